// Distances between points that are sums over coordinates. They are compared before the last root
// is taken: as sums of powers ("parts"), or the largest.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "spinney/common/dispatch.h"

namespace spinney::neighbors {

struct Euclidean {
  SPINNEY_INLINE double part(double gap) const { return gap * gap; }
  SPINNEY_INLINE double join(double sum, double part) const { return sum + part; }
  double root(double sum) const { return std::sqrt(sum); }
  double power(double distance) const { return distance * distance; }
};

struct Manhattan {
  SPINNEY_INLINE double part(double gap) const { return std::abs(gap); }
  SPINNEY_INLINE double join(double sum, double part) const { return sum + part; }
  double root(double sum) const { return sum; }
  double power(double distance) const { return distance; }
};

struct Chebyshev {
  SPINNEY_INLINE double part(double gap) const { return std::abs(gap); }
  SPINNEY_INLINE double join(double sum, double part) const { return sum > part ? sum : part; }
  double root(double sum) const { return sum; }
  double power(double distance) const { return distance; }
};

struct Minkowski {
  double p = 2;

  double part(double gap) const { return std::pow(std::abs(gap), p); }
  double join(double sum, double part) const { return sum + part; }
  double root(double sum) const { return std::pow(sum, 1 / p); }
  double power(double distance) const { return std::pow(distance, p); }
};

}  // namespace spinney::neighbors
