// The smallest solution of a least squares problem whose columns may depend on each other. Slow and
// exact: it is for the few places where a Cholesky factor cannot be trusted.
#pragma once

#include <cstddef>
#include <vector>

namespace spinney::neighbors {

// For a matrix A, given by columns, applies (AᵀA)⁺: singular values below `tolerance` times the
// largest count as zero.
class LeastNorm {
 public:
  // A column starts every `stride` numbers; what it holds is lost.
  void factor(double* columns, std::size_t n_rows, std::size_t n_columns, std::size_t stride,
              double tolerance);

  // out = (AᵀA)⁺ vector; both have n_columns numbers, and may be the same.
  void apply(const double* vector, double* out) const;

 private:
  // The right singular vectors times their values, one after the other, and the squares of the
  // values; zero says "left out".
  std::vector<double> directions_;
  std::vector<double> squares_;
  mutable std::vector<double> sum_;
  std::size_t n_columns_ = 0;
};

}  // namespace spinney::neighbors
