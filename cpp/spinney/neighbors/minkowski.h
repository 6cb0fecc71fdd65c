// Minkowski distances. They are compared without the final root: part() is the term of one
// coordinate, join() adds a term (or takes the maximum), root() converts a sum to a distance and
// power() a distance to a sum.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "spinney/common/dispatch.h"
#include "spinney/common/elementary.h"

namespace spinney::neighbors {

struct Euclidean {
  SPINNEY_INLINE double part(double difference) const { return difference * difference; }
  SPINNEY_INLINE double join(double sum, double part) const { return sum + part; }
  double root(double sum) const { return std::sqrt(sum); }
  double power(double distance) const { return distance * distance; }
};

struct Manhattan {
  SPINNEY_INLINE double part(double difference) const { return std::abs(difference); }
  SPINNEY_INLINE double join(double sum, double part) const { return sum + part; }
  double root(double sum) const { return sum; }
  double power(double distance) const { return distance; }
};

struct Chebyshev {
  SPINNEY_INLINE double part(double difference) const { return std::abs(difference); }
  SPINNEY_INLINE double join(double sum, double part) const { return sum > part ? sum : part; }
  double root(double sum) const { return sum; }
  double power(double distance) const { return distance; }
};

struct Minkowski {
  double p = 2;

  double part(double difference) const { return common::pow(std::abs(difference), p); }
  double join(double sum, double part) const { return sum + part; }
  double root(double sum) const { return common::pow(sum, 1 / p); }
  double power(double distance) const { return common::pow(distance, p); }
};

}  // namespace spinney::neighbors
