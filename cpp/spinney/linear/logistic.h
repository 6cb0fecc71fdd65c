// Passes of logistic regression over the rows: loss, gradient and, where asked for, the matrix of
// second derivatives, in one reading of the data.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/linear/design.h"

namespace spinney::linear {

struct Derivatives {
  double loss = 0;
  std::vector<double> gradient;
  std::vector<double> hessian;  // a full matrix, row by row; empty unless asked for
};

// Two classes. `targets` has a number in [0, 1] for each row, `weights` may be null, `coefficients`
// one for each column and last the intercept, for columns less their `centre`.
struct BinaryProblem {
  const double* targets;
  const double* weights;
  const double* coefficients;
};

template <class T>
Derivatives measure_binary(const DenseRows<T>& rows, const double* centre,
                           const BinaryProblem& problem, bool second, int n_threads);
template <class Index>
Derivatives measure_binary(const SparseRows<Index>& rows, const BinaryProblem& problem, bool second,
                           int n_threads);

// Several classes, by softmax. `labels` are in 0 … n_classes - 1, `coefficients` and the gradient
// are (n_classes, n_features + 1).
struct MultinomialProblem {
  const std::int32_t* labels;
  const double* weights;
  const double* coefficients;
  std::size_t n_classes;
};

template <class T>
Derivatives measure_multinomial(const DenseRows<T>& rows, const double* centre,
                                const MultinomialProblem& problem, bool second, int n_threads);
template <class Index>
Derivatives measure_multinomial(const SparseRows<Index>& rows, const MultinomialProblem& problem,
                                int n_threads);

}  // namespace spinney::linear
