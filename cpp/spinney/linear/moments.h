// Second moments of rows, targets and ones in one pass: the sufficient statistics of least squares.
#pragma once

#include <vector>

#include "spinney/linear/design.h"

namespace spinney::linear {

// Targets and weights of rows.
struct WeightedTargets {
  const double* values;  // (n_rows, n_targets), row-major
  std::size_t n_targets;
  const double* weights;  // null: all weights are 1
};

// Σ w u uᵀ over rows, u = (x − centre of x, y − centre of y, 1), as a full matrix.
template <class T>
std::vector<double> sum_moments(const DenseRows<T>& rows, const WeightedTargets& targets,
                                const double* centre, int n_threads);

// The same for sparse rows without centring, which would make them dense.
template <class Index>
std::vector<double> sum_moments(const SparseRows<Index>& rows, const WeightedTargets& targets,
                                int n_threads);

}  // namespace spinney::linear
