// Leave-one-out errors of ridge regression for many penalties in one pass.
#pragma once

#include <vector>

#include "spinney/linear/moments.h"

namespace spinney::linear {

// The rows in the basis of the eigenvectors of their moments: z = Vᵀ (x − centre).
struct RidgePath {
  const double* centre;
  const double* basis;  // (n_features, n_basis), row-major
  std::size_t n_basis;
  const double* shrinkage;   // (n_alphas, n_basis): 1 / (eigenvalue + alpha)
  const double* weights;     // (n_alphas, n_targets, n_basis): coefficients in the basis
  const double* intercepts;  // (n_targets)
  std::size_t n_alphas;
  double base_leverage;  // leverage of the intercept: 1 / sum of weights, or 0
};

// Returns sums over rows of the weighted squared leave-one-out errors, (n_alphas, n_targets).
// Writes the leave-one-out predictions, (n_rows, n_targets, n_alphas), unless `predictions` is
// null.
template <class T>
std::vector<double> leave_one_out(const DenseRows<T>& rows, const WeightedTargets& targets,
                                  const RidgePath& path, int n_threads, double* predictions);

}  // namespace spinney::linear
