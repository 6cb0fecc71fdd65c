// Targets in the smallest type that holds them exactly: classes in one byte, values that float32
// represents in four.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spinney::loss {

class LossTargets {
 public:
  LossTargets() = default;
  LossTargets(const double* wide) : wide_(wide) {}           // NOLINT: implicit by design
  LossTargets(const float* narrow) : narrow_(narrow) {}      // NOLINT
  LossTargets(const std::uint8_t* small) : small_(small) {}  // NOLINT

  double operator[](std::size_t i) const {
    if (wide_ != nullptr) return wide_[i];
    return narrow_ != nullptr ? static_cast<double>(narrow_[i]) : static_cast<double>(small_[i]);
  }

  // Targets [begin, end) as doubles: a view if they are doubles, else converted into `buffer`.
  const double* as_doubles(std::size_t begin, std::size_t end, double* buffer) const {
    if (wide_ != nullptr) return wide_ + begin;
    if (narrow_ != nullptr) {
      for (std::size_t i = begin; i < end; ++i) buffer[i - begin] = static_cast<double>(narrow_[i]);
    } else {
      for (std::size_t i = begin; i < end; ++i) buffer[i - begin] = static_cast<double>(small_[i]);
    }
    return buffer;
  }

  // Size of one target.
  std::size_t bytes() const {
    if (wide_ != nullptr) return sizeof(double);
    return narrow_ != nullptr ? sizeof(float) : sizeof(std::uint8_t);
  }

  // Null unless they are doubles.
  const double* wide() const { return wide_; }

 private:
  const double* wide_ = nullptr;
  const float* narrow_ = nullptr;
  const std::uint8_t* small_ = nullptr;
};

}  // namespace spinney::loss
