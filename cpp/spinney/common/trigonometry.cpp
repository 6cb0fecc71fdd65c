// Sine, cosine and arcsine.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numbers>

#include "spinney/common/compiler.h"
#include "spinney/common/elementary.h"

namespace spinney::common {

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double quarter_turn = std::numbers::pi / 2;  // rounded
constexpr double quarter_turn_low = 0x1.1a62633145c07p-54;
constexpr double eighth_turn = std::numbers::pi / 4;

// The bits of 2/π after the point, and before them zeros for arguments below 2^53.
constexpr std::array<std::uint64_t, 20> two_over_pi = {0,
                                                       0xa2f9836e4e441529ULL,
                                                       0xfc2757d1f534ddc0ULL,
                                                       0xdb6295993c439041ULL,
                                                       0xfe5163abdebbc561ULL,
                                                       0xb7246e3a424dd2e0ULL,
                                                       0x06492eea09d1921cULL,
                                                       0xfe1deb1cb129a73eULL,
                                                       0xe88235f52ebb4484ULL,
                                                       0xe99c7026b45f7e41ULL,
                                                       0x3991d639835339f4ULL,
                                                       0x9c845f8bbdf9283bULL,
                                                       0x1ff897ffde05980fULL,
                                                       0xef2f118b5a0a6d1fULL,
                                                       0x6d367ecf27cb09b7ULL,
                                                       0x4f463f669e5fea2dULL,
                                                       0x7527bac7ebe5f17bULL,
                                                       0x3d0739f78a5292eaULL,
                                                       0x6bfb5fb11f8d5d08ULL,
                                                       0x56033046fc7b6babULL};

// x = quadrant · π/2 + high + low, with |high| <= π/4.
struct Reduced {
  unsigned quadrant = 0;
  double high = 0;
  double low = 0;
};

// The argument modulo 2π, exact in effect for every size (Payne and Hanek 1983): with x = m · 2^e,
// only 192 bits of 2/π matter. Those before them give multiples of four quadrants, and those after
// them less than 2^-137 of one.
Reduced reduce(double x) {
  const double size = std::abs(x);
  if (size <= eighth_turn) return {0, x, 0.0};
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(size);
  const auto exponent = static_cast<int>(bits >> 52) - 1075;
  const std::uint64_t m = (bits & 0xfffffffffffffULL) | (std::uint64_t{1} << 52);
  const auto start = static_cast<std::size_t>(exponent - 2 + 64);  // the first bit that matters
  const std::size_t word = start / 64;
  const std::size_t shift = start % 64;
  std::array<std::uint64_t, 3> window{};
  for (std::size_t i = 0; i < 3; ++i) {
    window[i] = two_over_pi[word + i] << shift;
    if (shift > 0) window[i] |= two_over_pi[word + i + 1] >> (64 - shift);
  }
  // The product modulo 2^192: two bits of the quadrant, then the fraction.
  const WideProduct low = multiply_wide(m, window[2]);
  const WideProduct middle = multiply_wide(m, window[1]);
  const std::uint64_t third = low.low;
  const std::uint64_t second = middle.low + low.high;
  const std::uint64_t carry = second < low.high ? 1 : 0;
  const std::uint64_t top = m * window[0] + middle.high + carry;
  std::uint64_t fraction = top << 2 | second >> 62;
  std::uint64_t fraction_low = second << 2 | third >> 62;
  // A fraction of a half or more belongs to the next quadrant, with a negative rest.
  const bool negative = fraction >> 63 != 0;
  auto quadrant = static_cast<unsigned>(top >> 62) + (negative ? 1 : 0);
  if (negative) {
    fraction_low = 0 - fraction_low;
    fraction = ~fraction + (fraction_low == 0 ? 1 : 0);
  }
  if (fraction == 0) {  // does not occur for doubles
    return {quadrant & 3, 0.0, 0.0};
  }
  const int zeros = std::countl_zero(fraction);
  if (zeros > 0) fraction = fraction << zeros | fraction_low >> (64 - zeros);
  const double scale = std::bit_cast<double>(static_cast<std::uint64_t>(1023 - 64 - zeros) << 52);
  const double f = static_cast<double>(fraction & ~std::uint64_t{0x7ff}) * scale;
  const double f_low = static_cast<double>(fraction & 0x7ff) * scale;
  // f · π/2 in two parts.
  const double f_lead = detail::leading_bits(f);
  const double turn_lead = detail::leading_bits(quarter_turn);
  const double f_rest = f - f_lead;
  const double turn_rest = quarter_turn - turn_lead;
  const double product = f * quarter_turn;
  const double rest = ((f_lead * turn_lead - product) + f_lead * turn_rest + f_rest * turn_lead) +
                      (f_rest * turn_rest + (f * quarter_turn_low + f_low * quarter_turn));
  Reduced out{quadrant & 3, product + rest, 0.0};
  out.low = (product - out.high) + rest;
  if (negative != (x < 0)) {
    out.high = -out.high;
    out.low = -out.low;
  }
  if (x < 0) out.quadrant = (0 - quadrant) & 3;
  return out;
}

// sin(x + low) for |x| <= π/4, by the Taylor series.
double sin_near_zero(double x, double low) {
  const double z = x * x;
  double p = 1.0 / 355687428096000.0;
  p = p * z - 1.0 / 1307674368000.0;
  p = p * z + 1.0 / 6227020800.0;
  p = p * z - 1.0 / 39916800.0;
  p = p * z + 1.0 / 362880.0;
  p = p * z - 1.0 / 5040.0;
  p = p * z + 1.0 / 120.0;
  p = p * z - 1.0 / 6.0;
  return x + (x * z * p + low * (1.0 - 0.5 * z));
}

// cos(x + low) for |x| <= π/4, by the Taylor series.
double cos_near_zero(double x, double low) {
  const double z = x * x;
  double p = -1.0 / 6402373705728000.0;
  p = p * z + 1.0 / 20922789888000.0;
  p = p * z - 1.0 / 87178291200.0;
  p = p * z + 1.0 / 479001600.0;
  p = p * z - 1.0 / 3628800.0;
  p = p * z + 1.0 / 40320.0;
  p = p * z - 1.0 / 720.0;
  p = p * z + 1.0 / 24.0;
  const double half_square = 0.5 * z;
  const double first = 1.0 - half_square;
  return first + (((1.0 - first) - half_square) + (z * z * p - x * low));
}

// The sine of a reduced argument, plus a number of quarter turns.
double sin_of(const Reduced& x, unsigned quarters) {
  const unsigned quadrant = (x.quadrant + quarters) & 3;
  const double value =
      quadrant % 2 == 0 ? sin_near_zero(x.high, x.low) : cos_near_zero(x.high, x.low);
  return quadrant < 2 ? value : -value;
}

// (asin(x) - x) / x³ as a function of z = x², for z <= 1/4.
double asin_series(double z) {
  double p = 0x1.d72b2bc8155f8p-6;
  p = p * z - 0x1.e6aaa8a0a04ccp-7;
  p = p * z + 0x1.1d189408314eep-6;
  p = p * z + 0x1.65a9c4dfcf8b2p-8;
  p = p * z + 0x1.52420b04b37bep-7;
  p = p * z + 0x1.782651caa6547p-7;
  p = p * z + 0x1.c9cf07674736ap-7;
  p = p * z + 0x1.1c4d35cf95421p-6;
  p = p * z + 0x1.6e8bb1c8209a2p-6;
  p = p * z + 0x1.f1c71c1db0623p-6;
  p = p * z + 0x1.6db6db6e31f13p-5;
  p = p * z + 0x1.3333333332ecap-4;
  return p * z + 0x1.5555555555556p-3;
}

}  // namespace

double sin(double x) {
  if (x == 0.0) return x;  // keeps the sign
  return std::isfinite(x) ? sin_of(reduce(x), 0) : nan;
}

double cos(double x) { return std::isfinite(x) ? sin_of(reduce(x), 1) : nan; }

double asin(double x) {
  const double size = std::abs(x);
  if (!(size <= 1.0)) return nan;
  if (size <= 0.5) {
    const double z = x * x;
    return x + x * z * asin_series(z);
  }
  // asin(x) = π/2 - 2 asin(√z) with z = (1 - x)/2. The root in two parts, its first one short.
  const double z = 0.5 * (1.0 - size);
  const double root = std::sqrt(z);
  const double lead = detail::leading_bits(root);
  const double rest = root > 0 ? (z - lead * lead) / (root + lead) : 0.0;
  const double small = quarter_turn_low - 2.0 * (rest + root * z * asin_series(z));
  const double result = eighth_turn + ((eighth_turn - 2.0 * lead) + small);
  return std::copysign(result, x);
}

}  // namespace spinney::common
