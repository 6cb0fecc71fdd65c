// Comparisons of distances between vectors. They need no root. Sums run in eight lanes for every
// instruction set, so that all give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "spinney/common/simd.h"

namespace spinney::distance {

// Eight coordinates.
using Coordinates = common::Doubles8;
constexpr std::size_t n_coordinates = common::lane_count<Coordinates>;

// Calls body(x, a, b) with eight coordinates of each vector at a time. The last eight may overlap
// the eight before; coordinates that were already passed are then zero, which no metric counts.
template <class Body>
SPINNEY_INLINE void for_coordinates(const double* x, const double* a, const double* b,
                                    std::size_t n, const Body& body) {
  if (n < n_coordinates) {
    return body(common::load_first<Coordinates>(x, n), common::load_first<Coordinates>(a, n),
                common::load_first<Coordinates>(b, n));
  }
  std::size_t first = 0;
  for (; first + n_coordinates <= n; first += n_coordinates) {
    body(common::load<Coordinates>(x + first), common::load<Coordinates>(a + first),
         common::load<Coordinates>(b + first));
  }
  if (first == n) return;
  const std::size_t rest = n - first, begin = n - n_coordinates;
  const auto mask = ~common::first_lanes<Coordinates>(n_coordinates - rest);
  const auto masked = [mask](const double* from) SPINNEY_INLINE_LAMBDA {
    return common::keep<Coordinates>(mask, common::load<Coordinates>(from));
  };
  body(masked(x + begin), masked(a + begin), masked(b + begin));
}

template <class Real>
SPINNEY_INLINE Real magnitude(Real value) {
  return value < 0 ? -value : value;
}

SPINNEY_INLINE Coordinates magnitude(const Coordinates& values) { return common::absolute(values); }

// A metric has the size of a difference of coordinates and the rule that joins two sizes.
struct Euclidean {
  template <class Real>
  static SPINNEY_INLINE Real size(Real difference) {
    return difference * difference;
  }
  template <class Real>
  static SPINNEY_INLINE Real join(Real a, Real b) {
    return a + b;
  }
  // Squares may underflow if both sums are below this bound.
  static constexpr double underflow_bound = 1e-280;
};

struct Manhattan {
  template <class Real>
  static SPINNEY_INLINE Real size(Real difference) {
    return magnitude(difference);
  }
  template <class Real>
  static SPINNEY_INLINE Real join(Real a, Real b) {
    return a + b;
  }
  static constexpr double underflow_bound = 0;
};

struct Chebyshev {
  template <class Real>
  static SPINNEY_INLINE Real size(Real difference) {
    return magnitude(difference);
  }
  template <class Real>
  static SPINNEY_INLINE Real join(Real a, Real b) {
    return a < b ? b : a;
  }
  static constexpr double underflow_bound = 0;
};

// The comparison for sums that overflow or underflow. `before` scales the coordinates and `after`
// scales their differences. Both are powers of two, so scaling is exact.
template <class Metric>
bool is_closer_scaled(const double* x, const double* a, const double* b, std::size_t n,
                      double before, double after) {
  double to_a = 0, to_b = 0;
  for (std::size_t j = 0; j < n; ++j) {
    to_a = Metric::join(to_a, Metric::size((x[j] * before - a[j] * before) * after));
    to_b = Metric::join(to_b, Metric::size((x[j] * before - b[j] * before) * after));
  }
  return to_a < to_b;
}

// Whether x is closer to a than to b.
template <class Metric>
SPINNEY_INLINE bool is_closer(const double* x, const double* a, const double* b, std::size_t n) {
  Coordinates to_a = {}, to_b = {};
  for_coordinates(x, a, b, n,
                  [&](const Coordinates& of_x, const Coordinates& of_a, const Coordinates& of_b)
                      SPINNEY_INLINE_LAMBDA {
                        to_a = Metric::join(to_a, Metric::size(of_x - of_a));
                        to_b = Metric::join(to_b, Metric::size(of_x - of_b));
                      });
  const auto join = [](const auto& s, const auto& t)
                        SPINNEY_INLINE_LAMBDA { return Metric::join(s, t); };
  const double distance_a = common::join_lanes(to_a, join),
               distance_b = common::join_lanes(to_b, join);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (distance_a == infinity && distance_b == infinity) [[unlikely]] {
    return is_closer_scaled<Metric>(x, a, b, n, 0x1p-600, 1);
  }
  if (distance_a < Metric::underflow_bound && distance_b < Metric::underflow_bound) [[unlikely]] {
    return is_closer_scaled<Metric>(x, a, b, n, 1, 0x1p+800);
  }
  return distance_a < distance_b;
}

// Whether the angle between x and a is smaller than the angle between x and b. All vectors must
// have length one or zero. A zero vector is orthogonal to every vector.
SPINNEY_INLINE bool is_closer_in_angle(const double* x, const double* a, const double* b,
                                       std::size_t n) {
  Coordinates with_a = {}, with_b = {};
  for_coordinates(x, a, b, n,
                  [&](const Coordinates& of_x, const Coordinates& of_a, const Coordinates& of_b)
                      SPINNEY_INLINE_LAMBDA {
                        with_a += of_x * of_a;
                        with_b += of_x * of_b;
                      });
  return common::sum_lanes(with_a) > common::sum_lanes(with_b);
}

}  // namespace spinney::distance
