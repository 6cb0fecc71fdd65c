// The exponential function, without the C library for the reason given in log.h. Its error is at
// most about 1 ulp. It has no branches, so the compiler vectorises loops over it.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "spinney/common/dispatch.h"

namespace spinney::common {

// (exp(r) - 1 - r) / r^2 for |r| <= ln(2)/2, by the Taylor series.
SPINNEY_INLINE double exp_series(double r) {
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  return p;
}

// Arguments are limited to ±708: the losses need finite results above zero.
SPINNEY_INLINE double exp(double x) {
  x = x < -708.0 ? -708.0 : x;
  x = x > 708.0 ? 708.0 : x;
  constexpr double log2_e = 1.44269504088896338700;
  constexpr double ln2_high = 6.93147180369123816490e-01;
  constexpr double ln2_low = 1.90821492927058770002e-10;
  // Adding and subtracting this number rounds to an integer, whose bits are then the lowest ones.
  constexpr double shifter = 0x1.8p52;
  const double shifted = x * log2_e + shifter;
  const double n = shifted - shifter;
  const double r = (x - n * ln2_high) - n * ln2_low;  // |r| <= ln(2)/2
  const double power = 1.0 + (r + r * r * exp_series(r));
  const std::uint64_t exponent = std::bit_cast<std::uint64_t>(shifted) << 52;
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(power) + exponent);
}

}  // namespace spinney::common
