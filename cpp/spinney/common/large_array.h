// An array in large pages, not initialised. Reading large tables at random positions would spend
// most of its time on address translation with small pages.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "spinney/common/memory.h"

namespace spinney::common {

template <class T>
class LargeArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  LargeArray() = default;
  explicit LargeArray(std::size_t size) { resize(size); }
  LargeArray(LargeArray&& other) noexcept { swap(other); }
  LargeArray& operator=(LargeArray&& other) noexcept {
    swap(other);
    return *this;
  }
  LargeArray(const LargeArray&) = delete;
  LargeArray& operator=(const LargeArray&) = delete;
  ~LargeArray() { free_aligned(data_); }

  // Loses the elements unless the capacity suffices.
  void resize(std::size_t size) {
    if (size > capacity_) {
      free_aligned(data_);
      data_ = nullptr;
      size_ = capacity_ = 0;
      data_ = static_cast<T*>(allocate_aligned(size * sizeof(T)));
      capacity_ = size;
    }
    size_ = size;
  }

  std::size_t size() const { return size_; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T& operator[](std::size_t i) { return data_[i]; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }

 private:
  void swap(LargeArray& other) {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace spinney::common
