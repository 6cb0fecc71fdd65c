// Exponentials, logarithms and powers.
#include "spinney/common/elementary.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "spinney/common/exp.h"
#include "spinney/common/log.h"

namespace spinney::common {

namespace {

using detail::multiply;
using detail::Sum;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double log2_e = 0x1.71547652b82fep+0;
constexpr double log2_e_low = 0x1.777d0ffda0d24p-56;
constexpr double ln2 = 0x1.62e42fefa39efp-1;
constexpr double ln2_low = 0x1.abc9e3b39803fp-56;

// 2^exponent, for exponents of normal numbers.
double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

// log(x) for numbers m of [0.705, 1.41): a cell of m has a center c, and log(m) = log(c) +
// log(1 + r) with r = m/c - 1. 1/c has ten bits, so r needs no rounding in two parts.
struct LogCell {
  double inverse = 1;  // 1/c
  Sum log;             // log(c); the high part is a multiple of 2^-42
};

constexpr std::size_t n_cells = 128;
constexpr std::uint64_t first_cell = 0x3fe6900000000000ULL;  // the lower end, as bits
constexpr int cell_bits = 52 - 7;

// log(512 / n) = 2 atanh((512 - n) / (512 + n)), in units of 2^-100.
constexpr Sum log_of_fraction(int n) {
  __extension__ using Wide = __int128;
  const int a = 512 - n;
  const int b = 512 + n;
  Wide power = (static_cast<Wide>(1) << 101) * a / b;
  Wide sum = 0;
  for (int k = 1; k < 60; k += 2) {
    sum += power / k;
    power = power * a / b * a / b;
  }
  // Rounded to 2^-42: the rest of the sum is the low part.
  const Wide unit = static_cast<Wide>(1) << 58;
  const auto high = static_cast<std::int64_t>((sum + unit / 2) >> 58);
  const auto low = static_cast<std::int64_t>(sum - high * unit);
  return {static_cast<double>(high) * 0x1.0p-42, static_cast<double>(low) * 0x1.0p-100};
}

constexpr std::array<LogCell, n_cells> make_log_cells() {
  std::array<LogCell, n_cells> cells{};
  for (std::size_t i = 0; i < n_cells; ++i) {
    const std::uint64_t begin = first_cell + (static_cast<std::uint64_t>(i) << cell_bits);
    const std::uint64_t end = begin + (std::uint64_t{1} << cell_bits);
    const double middle = 0.5 * (std::bit_cast<double>(begin) + std::bit_cast<double>(end));
    const bool has_one = begin <= 0x3ff0000000000000ULL && end > 0x3ff0000000000000ULL;
    const int n = has_one ? 512 : static_cast<int>(512.0 / middle + 0.5);
    cells[i] = {static_cast<double>(n) / 512.0, log_of_fraction(n)};
  }
  return cells;
}

constexpr std::array<LogCell, n_cells> log_cells = make_log_cells();

// log(x) of a positive finite number, to about 2^-65 of its value.
Sum log_in_two_parts(double x) {
  int exponent = 0;
  if (x < std::numeric_limits<double>::min()) {
    x *= 0x1.0p54;
    exponent = -54;
  }
  std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t offset = bits - first_cell;
  const auto shift = static_cast<std::int64_t>(offset) >> 52;  // floor, also for negatives
  bits -= static_cast<std::uint64_t>(shift) << 52;
  exponent += static_cast<int>(shift);
  const LogCell& cell = log_cells[(offset >> cell_bits) % n_cells];
  const double m = std::bit_cast<double>(bits);
  const double m_high = std::bit_cast<double>(bits & ~std::uint64_t{0xffffffff});
  const double r_high = m_high * cell.inverse - 1.0;  // exact
  const double r_low = (m - m_high) * cell.inverse;   // exact
  const double r = r_high + r_low;
  const double r_rest = r_low - (r - r_high);

  constexpr double ln2_high = 0x1.62e42fefa3800p-1;  // a multiple of 2^-42
  constexpr double ln2_rest = 0x1.ef35793c76730p-45;
  const auto e = static_cast<double>(exponent);
  // e ln 2 + log(c) + r - r²/2 + r³/3 - …: the first terms in two parts.
  const double base = e * ln2_high + cell.log.high;  // exact
  const double first = base + r;
  const double first_rest = (base - first) + r;
  const double r_lead = detail::leading_bits(r);
  const double square = -0.5 * r_lead * r_lead;  // exact
  const double square_rest = -0.5 * (r - r_lead) * (r_lead + r);
  const double second = first + square;
  const double second_rest = (first - second) + square;
  double p = 1.0 / 9.0;
  p = p * r - 1.0 / 8.0;
  p = p * r + 1.0 / 7.0;
  p = p * r - 1.0 / 6.0;
  p = p * r + 1.0 / 5.0;
  p = p * r - 1.0 / 4.0;
  p = p * r + 1.0 / 3.0;
  const double rest = (e * ln2_rest + cell.log.low) + r_rest + first_rest + second_rest +
                      square_rest + r * r * r * p;
  const double high = second + rest;
  return {high, (second - high) + rest};
}

bool is_integer(double y) { return std::floor(y) == y; }
bool is_odd(double y) { return std::abs(y) < 0x1.0p53 && is_integer(y) && !is_integer(0.5 * y); }

// x^y for positive finite x other than 1 and finite y other than 0.
double pow_of_positive(double x, double y) {
  // Beyond these bounds, the result is not a finite number other than 0 and 1.
  if (std::abs(y) > 0x1.0p65) return (x > 1) == (y > 0) ? infinity : 0.0;
  if (std::abs(y) < 0x1.0p-65) return 1.0;
  const Sum log = log_in_two_parts(x);
  const double log_lead = detail::leading_bits(log.high);
  const double log_rest = (log.high - log_lead) + log.low;
  const double y_lead = detail::leading_bits(y);
  const double high = y_lead * log_lead;  // exact
  const double low = (y - y_lead) * log_lead + y * log_rest;
  return detail::exp_of_sum({high, low});
}

}  // namespace

namespace detail {

double leading_bits(double x) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & ~std::uint64_t{0x7ffffff});
}

Sum multiply(double x, double y) {
  const double high = x * y;
  const double x_high = leading_bits(x);
  const double y_high = leading_bits(y);
  const double x_low = x - x_high;
  const double y_low = y - y_high;
  return {high, ((x_high * y_high - high) + x_high * y_low + x_low * y_high) + x_low * y_low};
}

double exp_of_sum(const Sum& x, const Sum& factor) {
  if (!(x.high < 710.0)) return std::isnan(x.high) ? x.high : infinity;
  if (x.high < -746.0) return 0.0;
  // n = round(x / ln 2): the sum with this number has no bits for a fraction.
  constexpr double shifter = 0x1.8p52;
  const double n = (x.high * log2_e + shifter) - shifter;
  constexpr double ln2_high = 6.93147180369123816490e-01;  // n · ln2_high is exact
  constexpr double ln2_rest = 1.90821492927058770002e-10;
  const double r_high = x.high - n * ln2_high;
  const double r_low = x.low - n * ln2_rest;
  const double r = r_high + r_low;  // |r| <= ln(2)/2
  const double r_rest = (r_high - r) + r_low;
  const double change = r + (r * r * exp_series(r) + r_rest);  // exp(r) - 1
  const double power = factor.high + (factor.high * change + factor.low);
  // 2^n in two factors: one alone can overflow or underflow.
  const int exponent = static_cast<int>(n);
  const int half = exponent / 2;
  return power * power_of_two(half) * power_of_two(exponent - half);
}

}  // namespace detail

double exp_unclamped(double x) { return detail::exp_of_sum({x, 0.0}); }

double exp2(double x) {
  if (!(x < 1025.0)) return std::isnan(x) ? x : infinity;
  if (x < -1076.0) return 0.0;
  const double n = std::nearbyint(x);
  const Sum product = multiply(x - n, ln2);
  // The power of two is applied by exp_of_sum only for n = 0, so it is applied here.
  const double power = detail::exp_of_sum({product.high, product.low + (x - n) * ln2_low});
  const int exponent = static_cast<int>(n);
  const int half = exponent / 2;
  return power * power_of_two(half) * power_of_two(exponent - half);
}

double log2(double x) {
  if (!(x > 0.0)) return x == 0.0 ? -infinity : nan;
  if (x == infinity) return x;
  const Sum log = log_in_two_parts(x);
  const Sum product = multiply(log.high, log2_e);
  return product.high + (product.low + (log.high * log2_e_low + log.low * log2_e));
}

double log1p(double x) {
  if (!(x > -1.0)) return x == -1.0 ? -infinity : nan;
  if (x == infinity) return x;
  if (std::abs(x) < 0x1.0p-54) return x;
  if (std::abs(x) < 0.25) {
    // 2 atanh(s) with s = x/(2 + x) as in log(), where x is exact.
    const double s = x / (2.0 + x);
    const double z = s * s;
    const double half_square = 0.5 * x * x;
    return x - (half_square - s * (half_square + z * atanh_series(z)));
  }
  const double sum = 1.0 + x;
  const double rest = x > 1.0 ? 1.0 - (sum - x) : x - (sum - 1.0);
  return log(sum) + rest / sum;
}

double pow(double x, double y) {
  if (y == 0.0 || x == 1.0) return 1.0;
  if (std::isnan(x) || std::isnan(y)) return nan;
  const double size = std::abs(x);
  if (std::isinf(y)) {
    if (size == 1.0) return 1.0;
    return (size > 1.0) == (y > 0) ? infinity : 0.0;
  }
  const bool negative = std::signbit(x) && is_odd(y);
  double result = 0;
  if (size == 0.0 || size == infinity) {
    result = (size == 0.0) == (y > 0) ? 0.0 : infinity;
  } else if (x < 0 && !is_integer(y)) {
    return nan;
  } else {
    result = size == 1.0 ? 1.0 : pow_of_positive(size, y);
  }
  return negative ? -result : result;
}

}  // namespace spinney::common
