// Sums of real numbers that do not depend on the order of the terms: each term is rounded to a
// multiple of a power of two, and integers are added. The power follows from the largest term and
// the number of terms: as many bits as possible without overflow.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "spinney/common/dispatch.h"

namespace spinney::common {

// The units in 1 for n terms of at most `largest`, such that their sum stays below 2^62.
inline double units_in_one(double largest, std::uint64_t n) {
  if (!(largest > 0)) return 1;
  int exponent = 0;
  std::frexp(largest, &exponent);
  const int bits = std::min(50, 62 - static_cast<int>(std::bit_width(n)));
  return std::ldexp(1.0, std::clamp(bits - exponent, -1000, 1000));
}

// Rounds |x| up to 2^51 to the nearest integer, ties to even, by adding and subtracting 1.5 · 2^52.
SPINNEY_INLINE std::int64_t nearest(double x) {
  constexpr double shifter = 0x1.8p52;
  return static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(x + shifter) -
                                   std::bit_cast<std::uint64_t>(shifter));
}

// A sum modulo 2^64. Sums are invalid if a term is larger than expected; the caller checks that.
SPINNEY_INLINE std::int64_t wrapping_sum(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

}  // namespace spinney::common
