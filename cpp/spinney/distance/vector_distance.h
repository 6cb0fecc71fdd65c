// Comparisons of distances between vectors. They need no root. Sums run in eight lanes for every
// instruction set, so that all give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "spinney/common/dispatch.h"

namespace spinney::distance {

// Eight coordinates; the compiler splits them into the vectors of the instruction set.
using Coordinates = double __attribute__((vector_size(64)));
using CoordinateBits = std::int64_t __attribute__((vector_size(64)));
constexpr std::size_t n_coordinates = 8;

SPINNEY_INLINE Coordinates load(const double* from) {
  Coordinates out;
  __builtin_memcpy(&out, from, sizeof(out));
  return out;
}

SPINNEY_INLINE Coordinates load(const double* from, std::size_t n) {
  Coordinates out = {};
  for (std::size_t j = 0; j < n; ++j) out[j] = from[j];
  return out;
}

// Calls body(x, a, b) with eight coordinates of each vector at a time. The last eight may overlap
// the eight before; coordinates that were already passed are then zero, which no metric counts.
template <class Body>
SPINNEY_INLINE void for_coordinates(const double* x, const double* a, const double* b,
                                    std::size_t n, const Body& body) {
  if (n < n_coordinates) return body(load(x, n), load(a, n), load(b, n));
  std::size_t first = 0;
  for (; first + n_coordinates <= n; first += n_coordinates) {
    body(load(x + first), load(a + first), load(b + first));
  }
  if (first == n) return;
  static constexpr std::int64_t masks[2 * n_coordinates] = {0,  0,  0,  0,  0,  0,  0,  0,
                                                            -1, -1, -1, -1, -1, -1, -1, -1};
  const std::size_t rest = n - first, begin = n - n_coordinates;
  CoordinateBits mask;
  __builtin_memcpy(&mask, masks + rest, sizeof(mask));
  const auto masked = [mask](const double* from) __attribute__((always_inline)) {
    return reinterpret_cast<Coordinates>(reinterpret_cast<CoordinateBits>(load(from)) & mask);
  };
  body(masked(x + begin), masked(a + begin), masked(b + begin));
}

// Joins eight lanes in a fixed order.
template <class Join>
SPINNEY_INLINE double join_coordinates(const Coordinates& values, const Join& join) {
  const double a = join(join(values[0], values[4]), join(values[2], values[6]));
  const double b = join(join(values[1], values[5]), join(values[3], values[7]));
  return join(a, b);
}

template <class Real>
SPINNEY_INLINE Real magnitude(Real value) {
  return value < 0 ? -value : value;
}

SPINNEY_INLINE Coordinates magnitude(Coordinates values) {
  return reinterpret_cast<Coordinates>(reinterpret_cast<CoordinateBits>(values) &
                                       std::numeric_limits<std::int64_t>::max());
}

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
                  [&](Coordinates of_x, Coordinates of_a, Coordinates of_b)
                      __attribute__((always_inline)) {
                        to_a = Metric::join(to_a, Metric::size(of_x - of_a));
                        to_b = Metric::join(to_b, Metric::size(of_x - of_b));
                      });
  const auto join = [](double s, double t) { return Metric::join(s, t); };
  const double distance_a = join_coordinates(to_a, join), distance_b = join_coordinates(to_b, join);
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
                  [&](Coordinates of_x, Coordinates of_a, Coordinates of_b)
                      __attribute__((always_inline)) {
                        with_a += of_x * of_a;
                        with_b += of_x * of_b;
                      });
  const auto join = [](double s, double t) { return s + t; };
  return join_coordinates(with_a, join) > join_coordinates(with_b, join);
}

}  // namespace spinney::distance
