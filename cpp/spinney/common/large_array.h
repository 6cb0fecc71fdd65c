// An array that asks the system for large pages: tables that are read here and there would else
// spend their time on finding out where a page lies. What it holds is not initialised.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

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
  ~LargeArray() { std::free(data_); }

  // What it held is lost, unless it is large enough already.
  void resize(std::size_t size) {
    if (size > capacity_) {
      std::free(data_);
      data_ = nullptr;
      size_ = capacity_ = 0;
      constexpr std::size_t page = std::size_t{1} << 21;
      const std::size_t bytes = size * sizeof(T);
      const bool large = bytes >= 2 * page;
      const std::size_t unit = large ? page : 64;
      void* const got = std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit);
      if (got == nullptr) throw std::bad_alloc();
#if defined(__linux__) && defined(MADV_HUGEPAGE)
      // Only whole ones: of the last, most would be there for nothing.
      if (large) madvise(got, bytes / unit * unit, MADV_HUGEPAGE);
#endif
      data_ = static_cast<T*>(got);
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
