// Distances between two vectors, only as far as "which is the smaller?" needs them: no root is
// taken. Sums run in eight lanes whatever the instruction set, so that all give the same bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "spinney/common/dispatch.h"

namespace spinney {

// A metric says how one coordinate is added, and how two lanes are joined.
struct Euclidean {
  static SPINNEY_INLINE double add(double sum, double difference) {
    return sum + difference * difference;
  }
  static SPINNEY_INLINE double join(double a, double b) { return a + b; }
  // Sums of squares below this may have lost what parts them: 1e-308 is the least square that
  // keeps its precision.
  static constexpr double faint = 1e-280;
};

struct Manhattan {
  static SPINNEY_INLINE double add(double sum, double difference) {
    return sum + std::abs(difference);
  }
  static SPINNEY_INLINE double join(double a, double b) { return a + b; }
  static constexpr double faint = 0;
};

struct Chebyshev {
  static SPINNEY_INLINE double add(double largest, double difference) {
    const double size = std::abs(difference);
    return largest < size ? size : largest;
  }
  static SPINNEY_INLINE double join(double a, double b) { return a < b ? b : a; }
  static constexpr double faint = 0;
};

constexpr std::size_t n_lanes = 8;

template <class Join>
SPINNEY_INLINE double join_lanes(double* lanes, const Join& join) {
  for (std::size_t width = n_lanes / 2; width > 0; width /= 2) {
    for (std::size_t j = 0; j < width; ++j) lanes[j] = join(lanes[j], lanes[j + width]);
  }
  return lanes[0];
}

// The comparison again, where squares are too large or too small for a double. Powers of two change
// no digit: `before` shrinks what is huge, `after` enlarges differences that are tiny.
template <class Metric>
bool is_closer_scaled(const double* x, const double* a, const double* b, std::size_t n,
                      double before, double after) {
  double to_a = 0, to_b = 0;
  for (std::size_t j = 0; j < n; ++j) {
    to_a = Metric::add(to_a, (x[j] * before - a[j] * before) * after);
    to_b = Metric::add(to_b, (x[j] * before - b[j] * before) * after);
  }
  return to_a < to_b;
}

// Whether x is closer to a than to b.
template <class Metric>
SPINNEY_INLINE bool is_closer(const double* x, const double* a, const double* b, std::size_t n) {
  double to_a[n_lanes] = {}, to_b[n_lanes] = {};
  std::size_t first = 0;
  for (; first + n_lanes <= n; first += n_lanes) {
    for (std::size_t j = 0; j < n_lanes; ++j) {
      to_a[j] = Metric::add(to_a[j], x[first + j] - a[first + j]);
      to_b[j] = Metric::add(to_b[j], x[first + j] - b[first + j]);
    }
  }
  for (std::size_t j = 0; first + j < n; ++j) {
    to_a[j] = Metric::add(to_a[j], x[first + j] - a[first + j]);
    to_b[j] = Metric::add(to_b[j], x[first + j] - b[first + j]);
  }
  const auto join = [](double s, double t) { return Metric::join(s, t); };
  const double near = join_lanes(to_a, join), far = join_lanes(to_b, join);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (near == infinity && far == infinity) [[unlikely]] {
    return is_closer_scaled<Metric>(x, a, b, n, 0x1p-600, 1);
  }
  if (near < Metric::faint && far < Metric::faint) [[unlikely]] {
    return is_closer_scaled<Metric>(x, a, b, n, 1, 0x1p+800);
  }
  return near < far;
}

// Whether the angle between x and a is the smaller one; all vectors have length one, or are zero
// and then at right angles to everything.
SPINNEY_INLINE bool is_closer_in_angle(const double* x, const double* a, const double* b,
                                       std::size_t n) {
  double with_a[n_lanes] = {}, with_b[n_lanes] = {};
  std::size_t first = 0;
  for (; first + n_lanes <= n; first += n_lanes) {
    for (std::size_t j = 0; j < n_lanes; ++j) {
      with_a[j] += x[first + j] * a[first + j];
      with_b[j] += x[first + j] * b[first + j];
    }
  }
  for (std::size_t j = 0; first + j < n; ++j) {
    with_a[j] += x[first + j] * a[first + j];
    with_b[j] += x[first + j] * b[first + j];
  }
  const auto join = [](double s, double t) { return s + t; };
  return join_lanes(with_a, join) > join_lanes(with_b, join);
}

}  // namespace spinney
