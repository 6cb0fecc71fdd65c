// An array of a tree: it owns its memory while the tree is built, or views other memory, such as a
// mapped file. CompactTree::owner keeps viewed memory alive.
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
  // A copy owns its memory, also if the original is a view.
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

  // The following functions change the array; a view is copied first.
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
