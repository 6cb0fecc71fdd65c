// Products of rows and coefficients, for predictions of linear models. A product depends only on
// the values of its row: not on other rows, memory layout, sparsity, threads or the instruction
// set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "spinney/linear/design.h"

namespace spinney::linear {

struct Coefficients {
  const double* values;  // (n_outputs, n_features)
  std::size_t n_outputs;
  const double* centre;  // subtracted from each row; null for none and for sparse rows
};

// out[i, k] = Σ_j (x_ij − centre_j) values_kj
void multiply_rows(const DenseRows<double>& rows, const Coefficients& by, int n_threads,
                   double* out);
void multiply_rows(const DenseRows<float>& rows, const Coefficients& by, int n_threads,
                   double* out);
void multiply_rows(const SparseRows<std::int32_t>& rows, const Coefficients& by, int n_threads,
                   double* out);
void multiply_rows(const SparseRows<std::int64_t>& rows, const Coefficients& by, int n_threads,
                   double* out);

}  // namespace spinney::linear
