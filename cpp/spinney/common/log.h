// The natural logarithm. C libraries choose a routine by the processor, and the last bit of a gain
// must not depend on the machine, so the core has its own. Its error is at most about 1 ulp.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>

#include "spinney/common/dispatch.h"

namespace spinney::common {

// 2/3 + 2/5 z + 2/7 z^2 + …: with s^2 = z, 2 atanh(s) = 2 s + s z times this.
SPINNEY_INLINE double atanh_series(double z) {
  double p = 2.0 / 21.0;
  p = p * z + 2.0 / 19.0;
  p = p * z + 2.0 / 17.0;
  p = p * z + 2.0 / 15.0;
  p = p * z + 2.0 / 13.0;
  p = p * z + 2.0 / 11.0;
  p = p * z + 2.0 / 9.0;
  p = p * z + 2.0 / 7.0;
  p = p * z + 2.0 / 5.0;
  p = p * z + 2.0 / 3.0;
  return p;
}

// The logarithm of a positive normal number. It has no branches, so the compiler vectorises loops
// over it.
SPINNEY_INLINE double log_normal(double x) {
  // x = 2^exponent * m with m in [sqrt(1/2), sqrt(2))
  std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  constexpr std::uint64_t sqrt_half = 0x3fe6a09e667f3bcdULL;
  const std::int64_t shift =
      static_cast<std::int64_t>(bits - sqrt_half) >> 52;  // floor, also for negatives
  bits -= static_cast<std::uint64_t>(shift) << 52;
  const double f = std::bit_cast<double>(bits) - 1.0;
  // log(1+f) = 2 atanh(s), s = f/(2+f). |s| <= 0.1716, so the omitted terms of the series in s^2
  // are below 0.5 ulp.
  const double s = f / (2.0 + f);
  const double z = s * s;
  const double half_square = 0.5 * f * f;
  // f - (f^2/2 - s (f^2/2 + z p)) keeps the leading term exact.
  const double tail = s * (half_square + z * atanh_series(z));
  constexpr double ln2_high = 6.93147180369123816490e-01;
  constexpr double ln2_low = 1.90821492927058770002e-10;
  const double e = static_cast<double>(shift);
  return e * ln2_high - ((half_square - (tail + e * ln2_low)) - f);
}

SPINNEY_INLINE double log(double x) {
  if (!(x > 0.0)) {
    return x == 0.0 ? -std::numeric_limits<double>::infinity()
                    : std::numeric_limits<double>::quiet_NaN();
  }
  if (x > std::numeric_limits<double>::max()) return x;
  if (x < std::numeric_limits<double>::min()) {  // scaled by 2^54
    constexpr double log_of_scale = 37.429947750237048;
    return log_normal(x * 0x1.0p54) - log_of_scale;
  }
  return log_normal(x);
}

}  // namespace spinney::common
