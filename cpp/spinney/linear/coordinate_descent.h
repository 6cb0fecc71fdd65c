// Coordinate descent for a quadratic function with L1 and L2 penalties:
//   ½ δᵀHδ + gᵀδ + Σ a_j |w_j + δ_j| + ½ Σ b_j (w_j + δ_j)²
#pragma once

#include <cstddef>
#include <vector>

namespace spinney::linear {

struct Penalty {
  const double* l1;  // a
  const double* l2;  // b
};

struct Descent {
  std::size_t n_sweeps = 0;
  double violation = 0;  // largest violation of the optimality conditions in the last full sweep
};

// H is a symmetric matrix. Replaces w by w + δ. Stops when no coordinate violates its optimality
// condition by more than `tolerance`.
Descent descend_by_matrix(const double* hessian, const double* gradient, std::size_t size,
                          const Penalty& penalty, double tolerance, std::size_t max_sweeps,
                          double* w);

}  // namespace spinney::linear
