// Coordinate descent for a quadratic with an absolute-value penalty:
//   ½ δᵀHδ + gᵀδ + Σ a_j |w_j + δ_j| + ½ Σ b_j (w_j + δ_j)²
#pragma once

#include <cstddef>
#include <vector>

namespace spinney::linear {

struct Penalty {
  const double* absolute;  // a
  const double* square;    // b
};

struct Descent {
  std::size_t n_sweeps = 0;
  double violation = 0;  // the largest by which a coordinate misses its optimum, as a derivative
};

// H as a matrix, row by row, symmetric. `w` goes in and comes out moved by δ. Ends once no
// coordinate is off by more than `tolerance`.
Descent descend_by_matrix(const double* hessian, const double* gradient, std::size_t size,
                          const Penalty& penalty, double tolerance, std::size_t most_sweeps,
                          double* w);

}  // namespace spinney::linear
