// Smoothing kernels: the weight of a row by its distance in bandwidths. All are one at distance
// zero, so that a penalty has the same effect with each of them.
#pragma once

#include <cstddef>

#include "spinney/common/dispatch.h"
#include "spinney/common/exp.h"

namespace spinney::neighbors {

enum class SmoothingKernel {
  uniform,
  triangular,
  epanechnikov,
  biweight,
  triweight,
  tricube,
  gaussian,
  cosine,
  logistic,
};

namespace kernel_formula {

SPINNEY_INLINE double uniform(double u) { return u <= 1.0 ? 1.0 : 0.0; }

SPINNEY_INLINE double triangular(double u) { return u < 1.0 ? 1.0 - u : 0.0; }

SPINNEY_INLINE double epanechnikov(double u) { return u < 1.0 ? 1.0 - u * u : 0.0; }

SPINNEY_INLINE double biweight(double u) {
  const double rest = epanechnikov(u);
  return rest * rest;
}

SPINNEY_INLINE double triweight(double u) {
  const double rest = epanechnikov(u);
  return rest * rest * rest;
}

SPINNEY_INLINE double tricube(double u) {
  const double rest = u < 1.0 ? 1.0 - u * u * u : 0.0;
  return rest * rest * rest;
}

SPINNEY_INLINE double gaussian(double u) { return common::exp(-0.5 * u * u); }

// cos(πu/2) by its power series, with an error below half an ulp. The C library's
// result depends on the processor.
SPINNEY_INLINE double cosine(double u) {
  constexpr double half_pi = 1.57079632679489661923;
  const double x = half_pi * (u < 1.0 ? u : 1.0);
  const double z = -x * x;
  double p = 1.0 / (21.0 * 22.0);
  p = 1.0 / (19.0 * 20.0) * (1.0 + z * p);
  p = 1.0 / (17.0 * 18.0) * (1.0 + z * p);
  p = 1.0 / (15.0 * 16.0) * (1.0 + z * p);
  p = 1.0 / (13.0 * 14.0) * (1.0 + z * p);
  p = 1.0 / (11.0 * 12.0) * (1.0 + z * p);
  p = 1.0 / (9.0 * 10.0) * (1.0 + z * p);
  p = 1.0 / (7.0 * 8.0) * (1.0 + z * p);
  p = 1.0 / (5.0 * 6.0) * (1.0 + z * p);
  p = 1.0 / (3.0 * 4.0) * (1.0 + z * p);
  p = 1.0 + z * (0.5 * (1.0 + z * p));
  return u < 1.0 && p > 0.0 ? p : 0.0;
}

SPINNEY_INLINE double logistic(double u) {
  const double e = common::exp(-u);
  return 4.0 * e / ((1.0 + e) * (1.0 + e));
}

}  // namespace kernel_formula

}  // namespace spinney::neighbors
