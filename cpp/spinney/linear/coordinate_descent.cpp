#include "spinney/linear/coordinate_descent.h"

#include <algorithm>
#include <cmath>

#include "spinney/common/dispatch.h"
#include "spinney/common/lanes.h"

namespace spinney::linear {

namespace {

// Where a coordinate has its optimum, given the derivative of the smooth part at `w`.
SPINNEY_INLINE double best_place(double w, double slope, double curve, double absolute,
                                 double square) {
  const double top = curve * w - slope;
  const double size = std::abs(top) - absolute;
  if (size <= 0) return 0;
  return (top > 0 ? size : -size) / (curve + square);
}

// By how much zero is outside the derivatives of the objective at `w`.
SPINNEY_INLINE double violation_at(double w, double slope, double absolute, double square) {
  if (w == 0) return std::max(std::abs(slope) - absolute, 0.0);
  return std::abs(slope + square * w + (w > 0 ? absolute : -absolute));
}

SPINNEY_KERNEL void add_scaled(const double* from, double by, std::size_t n, double* to) {
  for (std::size_t i = 0; i < n; ++i) to[i] += by * from[i];
}

SPINNEY_KERNEL void add_scaled_products(const double* a, const double* b, double by, std::size_t n,
                                        double* to) {
  for (std::size_t i = 0; i < n; ++i) to[i] += by * (a[i] * b[i]);
}

SPINNEY_KERNEL double multiply(const double* a, const double* b, std::size_t n) {
  Lanes even = {}, odd = {};
  std::size_t i = 0;
  for (; i + 2 * n_lanes <= n; i += 2 * n_lanes) {
    even += load(a + i) * load(b + i);
    odd += load(a + i + n_lanes) * load(b + i + n_lanes);
  }
  double lanes[n_lanes];
  store(lanes, even + odd);
  double sum = add_up_lanes(lanes);
  for (; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// Sweeps over all coordinates, then over those that are not zero until they rest, and again.
// move(j) makes a step of coordinate j and returns its violation before the step.
template <class Move>
Descent sweep(std::size_t size, const double* w, double tolerance, std::size_t most_sweeps,
              const Move& move) {
  Descent descent;
  while (descent.n_sweeps < most_sweeps) {
    double worst = 0;
    for (std::size_t j = 0; j < size; ++j) worst = std::max(worst, move(j));
    ++descent.n_sweeps;
    descent.violation = worst;
    if (worst <= tolerance) return descent;
    while (descent.n_sweeps < most_sweeps) {
      double worst_active = 0;
      for (std::size_t j = 0; j < size; ++j) {
        if (w[j] != 0) worst_active = std::max(worst_active, move(j));
      }
      ++descent.n_sweeps;
      if (worst_active <= tolerance) break;
    }
  }
  return descent;
}

}  // namespace

Descent descend_by_matrix(const double* hessian, const double* gradient, std::size_t size,
                          const Penalty& penalty, double tolerance, std::size_t most_sweeps,
                          double* w) {
  std::vector<double> slopes(gradient, gradient + size);  // of the smooth part, at w as it is
  return sweep(size, w, tolerance, most_sweeps, [&](std::size_t j) {
    const double curve = hessian[j * size + j];
    const double a = penalty.absolute[j], b = penalty.square[j];
    const double violation = violation_at(w[j], slopes[j], a, b);
    if (!(curve + b > 0)) return 0.0;
    const double step = best_place(w[j], slopes[j], curve, a, b) - w[j];
    if (step != 0) {
      w[j] += step;
      add_scaled(hessian + j * size, step, size, slopes.data());
    }
    return violation;
  });
}

Descent descend_by_columns(const double* columns, std::size_t n_rows, std::size_t size,
                           const double* slopes, const double* curvatures, const Penalty& penalty,
                           double tolerance, std::size_t most_sweeps, double* w) {
  std::vector<double> moved(slopes, slopes + n_rows);  // slopes of rows, with the steps so far
  std::vector<double> curves(size), squared(n_rows);
  for (std::size_t j = 0; j < size; ++j) {
    const double* const x = columns + j * n_rows;
    for (std::size_t i = 0; i < n_rows; ++i) squared[i] = x[i] * x[i];
    curves[j] = multiply(squared.data(), curvatures, n_rows);
  }
  return sweep(size, w, tolerance, most_sweeps, [&](std::size_t j) {
    const double* const x = columns + j * n_rows;
    const double a = penalty.absolute[j], b = penalty.square[j];
    const double slope = multiply(x, moved.data(), n_rows);
    const double violation = violation_at(w[j], slope, a, b);
    if (!(curves[j] + b > 0)) return 0.0;
    const double step = best_place(w[j], slope, curves[j], a, b) - w[j];
    if (step != 0) {
      w[j] += step;
      add_scaled_products(x, curvatures, step, n_rows, moved.data());
    }
    return violation;
  });
}

}  // namespace spinney::linear
