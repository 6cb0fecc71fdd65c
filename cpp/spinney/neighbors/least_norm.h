// The minimum-norm solution of a least squares problem whose columns may be linearly dependent. It
// is slow and accurate, for problems whose Cholesky factor is ill-conditioned.
#pragma once

#include <cstddef>
#include <vector>

namespace spinney::neighbors {

// Applies (AᵀA)⁺ for a column-major matrix A. Singular values of at most `tolerance` times the
// largest count as zero.
class LeastNorm {
 public:
  // Columns are `stride` values apart. Their contents are overwritten.
  void factor(double* columns, std::size_t n_rows, std::size_t n_columns, std::size_t stride,
              double tolerance);

  // out = (AᵀA)⁺ vector. Both have n_columns values and may be the same array.
  void apply(const double* vector, double* out) const;

 private:
  // The right singular vectors times their singular values, and the squared singular values. A
  // square of zero excludes the vector.
  std::vector<double> directions_;
  std::vector<double> squares_;
  mutable std::vector<double> sum_;
  std::size_t n_columns_ = 0;
};

}  // namespace spinney::neighbors
