// An array of a tree: its own memory while the tree is made, or a view of somebody else's, such as
// a file that is mapped. Who makes a view sees to it that the memory stays (CompactTree::owner).
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace spinney::forest {

template <class T>
class TreeArray {
 public:
  TreeArray() = default;
  // A copy has its own memory, whatever it is a copy of.
  TreeArray(const TreeArray& other) : own_(other.begin(), other.end()) { follow(); }
  TreeArray(TreeArray&& other) noexcept
      : own_(std::move(other.own_)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  TreeArray& operator=(TreeArray other) noexcept {
    own_ = std::move(other.own_);
    data_ = other.data_;
    size_ = other.size_;
    return *this;
  }
  ~TreeArray() = default;

  void view(std::span<const T> elsewhere) {
    own_ = {};
    data_ = elsewhere.data();
    size_ = elsewhere.size();
  }

  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  const T& operator[](std::size_t at) const { return data_[at]; }
  friend bool operator==(const TreeArray& a, const TreeArray& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

  // What follows changes the array; a view becomes the array's own first.
  std::span<T> edit() {
    keep();
    return own_;
  }
  void reserve(std::size_t n) {
    keep();
    own_.reserve(n);
    follow();
  }
  void push_back(const T& value) {
    keep();
    own_.push_back(value);
    follow();
  }
  template <class Iterator>
  void append(Iterator from, Iterator to) {
    keep();
    own_.insert(own_.end(), from, to);
    follow();
  }
  void append(std::size_t n, const T& value) {
    keep();
    own_.insert(own_.end(), n, value);
    follow();
  }
  void shrink_to_fit() {
    keep();
    own_.shrink_to_fit();
    follow();
  }

 private:
  void keep() {
    if (data_ == own_.data()) return;
    own_.assign(begin(), end());
    follow();
  }
  void follow() {
    data_ = own_.data();
    size_ = own_.size();
  }

  std::vector<T> own_;
  const T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace spinney::forest
