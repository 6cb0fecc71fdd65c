// The C library is the reference: its long double functions where they are more precise, and its
// double functions for edge cases.
#include "spinney/common/elementary.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numbers>
#include <vector>

#include "spinney/common/log.h"
#include "spinney/common/random.h"
#include "testing.h"

using namespace spinney;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

const std::vector<double> edge_cases = {0.0,
                                        -0.0,
                                        1.0,
                                        -1.0,
                                        2.0,
                                        -2.0,
                                        3.0,
                                        -3.0,
                                        0.5,
                                        -0.5,
                                        0.3,
                                        -0.7,
                                        5e-324,
                                        -5e-324,
                                        1e-310,
                                        -1e-310,
                                        1e-30,
                                        -1e-30,
                                        1.7e308,
                                        -1.7e308,
                                        0x1.0p53,
                                        -0x1.0p53,
                                        0x1.fffffffffffffp52,
                                        -0x1.fffffffffffffp52,
                                        1e17,
                                        infinity,
                                        -infinity,
                                        nan};

// The distance between neighbours of a finite number.
double ulp(double x) {
  const double size = std::min(std::abs(x), std::numeric_limits<double>::max() / 2);
  return std::nextafter(size, infinity) - size;
}

bool agree(double actual, long double expected) {
  const auto rounded = static_cast<double>(expected);
  if (std::isnan(rounded)) return std::isnan(actual);
  if (std::isinf(rounded) || rounded == 0) {
    return actual == rounded && std::signbit(actual) == std::signbit(rounded);
  }
  return std::abs(static_cast<long double>(actual) - expected) <= 2 * ulp(rounded);
}

double any_double(common::Stream& stream) {
  for (;;) {
    const std::uint64_t bits = stream.bits();
    double x = 0;
    std::memcpy(&x, &bits, sizeof(x));
    if (std::isfinite(x)) return x;
  }
}

// Numbers of a range, numbers of all sizes up to 1, and edge cases.
template <class Actual, class Expected>
void check_function(const Actual& actual, const Expected& expected, double low, double high) {
  common::Stream stream(5, common::Purpose::rows, 0);
  for (int i = 0; i < 20000; ++i) {
    const double u = stream.uniform();
    const double small = std::ldexp(2 * stream.uniform() - 1, -static_cast<int>(stream.below(70)));
    for (const double x : {low + u * (high - low), small, 1 + small, any_double(stream)}) {
      const double result = actual(x);
      if (agree(result, expected(static_cast<long double>(x)))) continue;
      CHECK_NEAR(result, static_cast<double>(expected(static_cast<long double>(x))), 0);
      return;
    }
  }
  for (const double x : edge_cases) {
    if (agree(actual(x), expected(static_cast<long double>(x)))) continue;
    CHECK_NEAR(actual(x), static_cast<double>(expected(static_cast<long double>(x))), 0);
  }
}

}  // namespace

TEST(exp_unclamped_agrees_with_the_c_library) {
  check_function(common::exp_unclamped, [](long double x) { return std::exp(x); }, -746, 710);
}

TEST(exp2_agrees_with_the_c_library) {
  check_function(common::exp2, [](long double x) { return std::exp2(x); }, -1076, 1025);
  for (int n = -1074; n <= 1023; ++n) CHECK(common::exp2(n) == std::ldexp(1.0, n));
}

TEST(log_agrees_with_the_c_library) {
  check_function(common::log, [](long double x) { return std::log(x); }, 0, 10);
}

TEST(log2_agrees_with_the_c_library) {
  check_function(common::log2, [](long double x) { return std::log2(x); }, 0, 10);
  for (int n = -1074; n <= 1023; ++n) CHECK(common::log2(std::ldexp(1.0, n)) == n);
}

TEST(log1p_agrees_with_the_c_library) {
  check_function(common::log1p, [](long double x) { return std::log1p(x); }, -1, 3);
}

TEST(sin_and_cos_agree_with_the_c_library) {
  check_function(common::sin, [](long double x) { return std::sin(x); }, -20, 20);
  check_function(common::cos, [](long double x) { return std::cos(x); }, -20, 20);
}

TEST(sin_and_cos_are_precise_near_multiples_of_a_quarter_turn) {
  for (int i = 1; i < 20000; ++i) {
    const double x = 0.5 * std::numbers::pi * i;
    CHECK(agree(common::sin(x), std::sin(static_cast<long double>(x))));
    CHECK(agree(common::cos(x), std::cos(static_cast<long double>(x))));
  }
  // The double that is closest to a multiple of π/2, relative to its size.
  const double closest = std::ldexp(6381956970095103.0, 797);
  CHECK_NEAR(common::cos(closest), -4.687165924254628e-19, 1e-33);
}

TEST(asin_agrees_with_the_c_library) {
  // The long double asin of some libraries is inexact near 1; this form is not.
  const auto expected = [](long double x) { return std::atan2(x, std::sqrt((1 - x) * (1 + x))); };
  check_function(common::asin, expected, -1, 1);
}

TEST(erfc_agrees_with_the_c_library) {
  check_function(common::erfc, [](long double x) { return std::erfc(x); }, -7, 28);
}

TEST(pow_agrees_with_the_c_library) {
  common::Stream stream(6, common::Purpose::rows, 0);
  const auto check = [](double x, double y) {
    const double actual = common::pow(x, y);
    const long double expected = std::pow(static_cast<long double>(x), static_cast<long double>(y));
    if (agree(actual, expected)) return;
    CHECK_NEAR(actual, static_cast<double>(expected), 0);
  };
  for (int i = 0; i < 40000; ++i) {
    check(4 * stream.uniform(), 16 * stream.uniform() - 8);
    check(std::abs(any_double(stream)), 2 * stream.uniform() - 1);
    check(any_double(stream), static_cast<double>(stream.below(20)) - 10);
    // Results of all sizes from bases near 1.
    const double small = std::ldexp(1.0, -static_cast<int>(stream.below(50)) - 1);
    const double base = 1 + small * (2 * stream.uniform() - 1);
    check(base, 740 * (2 * stream.uniform() - 1) / small);
  }
  for (const double x : edge_cases) {
    for (const double y : edge_cases) check(x, y);
  }
}
