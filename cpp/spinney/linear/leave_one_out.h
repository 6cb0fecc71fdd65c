// Ridge regression with every row left out in turn, for many penalties, in one pass.
#pragma once

#include <vector>

#include "spinney/linear/moments.h"

namespace spinney::linear {

// The rows in the basis of the eigenvectors of their moments: z = Vᵀ (x − centre).
struct RidgePath {
  const double* centre;
  const double* basis;  // (n_features, n_basis), row by row
  std::size_t n_basis;
  const double* shrinkage;   // (n_alphas, n_basis): 1 / (eigenvalue + alpha)
  const double* weights;     // (n_alphas, n_targets, n_basis): coefficients in the basis
  const double* intercepts;  // (n_targets)
  std::size_t n_alphas;
  double base_leverage;  // of the intercept: 1 / sum of weights, or 0
};

// What a row that was left out is off by, squared, times its weight: sums over rows, (n_alphas,
// n_targets). `predictions` of rows left out, (n_rows, n_targets, n_alphas), unless it is null.
template <class T>
std::vector<double> leave_one_out(const DenseRows<T>& rows, const WeightedTargets& targets,
                                  const RidgePath& path, int n_threads, double* predictions);

}  // namespace spinney::linear
