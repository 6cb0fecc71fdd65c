// Reads values from a fuzzer's input one after another; after its end it returns zeros.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), left_(size) {}

  std::size_t byte() { return number<std::uint8_t>(); }
  template <class T>
  std::vector<T> array() {
    std::size_t n = number<std::uint16_t>();
    if (n > left_ / sizeof(T)) n = left_ / sizeof(T);
    std::vector<T> out(n);
    take(out.data(), n * sizeof(T));
    return out;
  }

 private:
  template <class T>
  std::size_t number() {
    T value{};
    if (left_ >= sizeof(T)) take(&value, sizeof(T));
    return value;
  }
  void take(void* to, std::size_t n) {
    if (n > 0) std::memcpy(to, data_, n);
    data_ += n;
    left_ -= n;
  }
  const std::uint8_t* data_;
  std::size_t left_;
};
