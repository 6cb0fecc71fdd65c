// Logistic regression: loss, gradient and optionally the Hessian in one pass over the rows.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/linear/design.h"

namespace spinney::linear {

struct Derivatives {
  double loss = 0;
  std::vector<double> gradient;
  std::vector<double> hessian;  // full matrix; empty without with_hessian
};

// Two classes. Targets are in [0, 1], `weights` may be null, and `coefficients` has one value for
// each column, for x - centre, and the intercept last.
struct BinaryProblem {
  const double* targets;
  const double* weights;
  const double* coefficients;
};

template <class T>
Derivatives measure_binary(const DenseRows<T>& rows, const double* centre,
                           const BinaryProblem& problem, bool with_hessian, int n_threads);
template <class Index>
Derivatives measure_binary(const SparseRows<Index>& rows, const BinaryProblem& problem,
                           bool with_hessian, int n_threads);

// Several classes with softmax. Labels are in 0 … n_classes - 1. `coefficients` and the gradient
// have shape (n_classes, n_features + 1).
struct MultinomialProblem {
  const std::int32_t* labels;
  const double* weights;
  const double* coefficients;
  std::size_t n_classes;
};

template <class T>
Derivatives measure_multinomial(const DenseRows<T>& rows, const double* centre,
                                const MultinomialProblem& problem, bool with_hessian,
                                int n_threads);
template <class Index>
Derivatives measure_multinomial(const SparseRows<Index>& rows, const MultinomialProblem& problem,
                                int n_threads);

}  // namespace spinney::linear
