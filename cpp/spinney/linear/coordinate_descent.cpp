#include "spinney/linear/coordinate_descent.h"

#include <algorithm>
#include <cmath>

#include "spinney/common/dispatch.h"

namespace spinney::linear {

using common::dispatch;

namespace {

// The optimum of a coordinate, given the derivative of the smooth part at `w` (soft threshold).
SPINNEY_INLINE double best_coordinate(double w, double slope, double curve, double l1, double l2) {
  const double unpenalised = curve * w - slope;
  const double size = std::abs(unpenalised) - l1;
  if (size <= 0) return 0;
  return (unpenalised > 0 ? size : -size) / (curve + l2);
}

// The distance of zero from the subdifferential of the objective at `w`.
SPINNEY_INLINE double violation_at(double w, double slope, double l1, double l2) {
  if (w == 0) return std::max(std::abs(slope) - l1, 0.0);
  return std::abs(slope + l2 * w + (w > 0 ? l1 : -l1));
}

SPINNEY_INLINE void add_scaled_kernel(const double* from, double by, std::size_t n, double* to) {
  for (std::size_t i = 0; i < n; ++i) to[i] += by * from[i];
}

void add_scaled(const double* from, double by, std::size_t n, double* to) {
  dispatch<add_scaled_kernel>(from, by, n, to);
}

// Alternates a sweep over all coordinates with sweeps over the nonzero ones until these converge.
// move(j) updates coordinate j and returns its violation before the update.
template <class Move>
Descent sweep(std::size_t size, const double* w, double tolerance, std::size_t max_sweeps,
              const Move& move) {
  Descent descent;
  while (descent.n_sweeps < max_sweeps) {
    double worst = 0;
    for (std::size_t j = 0; j < size; ++j) worst = std::max(worst, move(j));
    ++descent.n_sweeps;
    descent.violation = worst;
    if (worst <= tolerance) return descent;
    while (descent.n_sweeps < max_sweeps) {
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
                          const Penalty& penalty, double tolerance, std::size_t max_sweeps,
                          double* w) {
  std::vector<double> slopes(gradient, gradient + size);  // derivatives of the smooth part at w
  return sweep(size, w, tolerance, max_sweeps, [&](std::size_t j) {
    const double curve = hessian[j * size + j];
    const double l1 = penalty.l1[j], l2 = penalty.l2[j];
    const double violation = violation_at(w[j], slopes[j], l1, l2);
    if (!(curve + l2 > 0)) return 0.0;
    const double step = best_coordinate(w[j], slopes[j], curve, l1, l2) - w[j];
    if (step != 0) {
      w[j] += step;
      add_scaled(hessian + j * size, step, size, slopes.data());
    }
    return violation;
  });
}

}  // namespace spinney::linear
