// Second moments of rows, targets and ones, in one pass: what least squares needs to know.
#pragma once

#include <vector>

#include "spinney/linear/design.h"

namespace spinney::linear {

// Targets and weights of rows.
struct WeightedTargets {
  const double* values;  // (n_rows, n_targets), row by row
  std::size_t n_targets;
  const double* weights;  // null: all one
};

// Σ w u uᵀ over rows, u = (x − centre of x, y − centre of y, 1); a full matrix, row by row.
template <class T>
std::vector<double> sum_moments(const DenseRows<T>& rows, const WeightedTargets& targets,
                                const double* centre, int n_threads);

// … without centring, which would fill the matrix.
template <class Index>
std::vector<double> sum_moments(const SparseRows<Index>& rows, const WeightedTargets& targets,
                                int n_threads);

}  // namespace spinney::linear
