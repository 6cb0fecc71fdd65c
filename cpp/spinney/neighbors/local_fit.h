// Local polynomials: at each query a polynomial of degree 0, 1 or 2, fitted by weighted least
// squares to the rows near it, whose value at the query is the answer.
//
//   terms     the products of features, measured from the query: z_a, and z_a z_b for degree 2
//   smoother  the answer is a sum over rows, Σ l_j y_j; the l_j do not depend on the targets
//   leverage  the l_j of the row that the query is
//   noise     Σ l_j² / weight_j: the variance of the answer in units of that of a target
//
// In four steps: weigh the rows; measure the terms from the query, in units of their range, and
// take their weighted means away, which fits the intercept; solve for one vector by Cholesky (by
// singular values where that is not safe), which gives all l_j; sum. Log-odds are fitted by
// Newton's steps, each of which is such a fit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "spinney/neighbors/smoothing_kernel.h"

namespace spinney::neighbors {

struct LocalModel {
  const double* x = nullptr;        // (n_rows, n_features)
  const double* y = nullptr;        // (n_rows, n_outputs)
  const double* weights = nullptr;  // (n_rows)
  std::size_t n_rows = 0;
  std::size_t n_features = 0;
  std::size_t n_outputs = 0;
  SmoothingKernel kernel = SmoothingKernel::tricube;
  int degree = 1;
  double alpha = 0;  // penalty of squared coefficients, not of the intercept
  // Targets are indicators of classes, and polynomials their log-odds; no smoother then.
  bool logit = false;
};

// The rows near each of n_queries places: those of query q are at starts[q] … starts[q + 1].
struct Neighborhoods {
  const double* queries = nullptr;  // (n_queries, n_features)
  std::size_t n_queries = 0;
  const std::int64_t* starts = nullptr;  // (n_queries + 1)
  const std::int64_t* rows = nullptr;
  std::size_t n_entries = 0;
  const double* distances = nullptr;
  const double* bandwidths = nullptr;      // (n_queries)
  const double* kernel_values = nullptr;   // instead of the model's kernel, one an entry
  const std::int64_t* own_rows = nullptr;  // (n_queries) the row that each query is
  bool leave_out = false;                  // do not use it
};

struct LocalAnswers {
  std::vector<double> values;     // (n_queries, n_outputs); NaN where no row has weight
  std::vector<double> noise;      // (n_queries)
  std::vector<double> leverages;  // (n_queries) if own rows are known
  std::vector<double> gradients;  // (n_queries, n_outputs, n_features) if asked for
};

std::size_t count_terms(int degree, std::size_t n_features);

LocalAnswers fit_local(const LocalModel& model, const Neighborhoods& neighborhoods,
                       bool with_gradients, int n_threads);

}  // namespace spinney::neighbors
