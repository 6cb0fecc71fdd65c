// Elementary functions with the same bits on every processor and system. The C library's versions
// differ between systems, and some C libraries choose another version for each processor. The
// largest error is below two units in the last place. Edge cases follow the C standard (Annex F).
//
// exp.h and log.h have inlined versions for loops over arrays. std::sqrt, std::ldexp and rounding
// to integers are exact everywhere, so the core uses the standard library for them.
#pragma once

namespace spinney::common {

// Unlike exp() of exp.h, this version returns 0 and infinity for large arguments.
double exp_unclamped(double x);
double exp2(double x);
double log2(double x);
double log1p(double x);
double pow(double x, double y);
double sin(double x);
double cos(double x);
double asin(double x);
double erfc(double x);

namespace detail {

// An unevaluated sum; low is at most the rounding error of high.
struct Sum {
  double high = 0;
  double low = 0;
};

// The part of x with the 26 leading bits of its mantissa. A product of two such parts is exact.
double leading_bits(double x);

// x · y without rounding, if neither overflows nor underflows.
Sum multiply(double x, double y);

// factor · exp(x), with a factor near 1.
double exp_of_sum(const Sum& x, const Sum& factor = {1.0, 0.0});

}  // namespace detail

}  // namespace spinney::common
