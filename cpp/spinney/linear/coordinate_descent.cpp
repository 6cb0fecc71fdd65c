#include "spinney/linear/coordinate_descent.h"

#include <algorithm>
#include <cmath>

#include "spinney/common/dispatch.h"

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

}  // namespace spinney::linear
