// Local polynomial regression. At each query, weighted least squares fits a polynomial of degree 0,
// 1 or 2 to the neighbours. The prediction is its value at the query.
//
//   terms     differences z_a = x_a - query_a, and products z_a z_b for degree 2
//   smoother  the l_j of the prediction Σ l_j y_j; they do not depend on the targets
//   leverage  the l_j of the training row that equals the query
//   noise     Σ l_j² / weight_j: the variance of the prediction in units of that of a target
//
// A fit has four steps: compute the weights of the rows; compute the terms, scaled by their range,
// and subtract their weighted means, which fits the intercept; solve one linear system by Cholesky
// (or by singular values if ill-conditioned), which gives all l_j; sum. Log-odds are fitted by
// Newton's method, where each step is such a fit.
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
  double alpha = 0;  // L2 penalty of the coefficients without the intercept
  // Targets are indicators of classes and the polynomials are their log-odds. No smoother exists.
  bool logit = false;
};

// The neighbours of each query: those of query q are at starts[q] … starts[q + 1] - 1 of `rows`.
struct Neighborhoods {
  const double* queries = nullptr;  // (n_queries, n_features)
  std::size_t n_queries = 0;
  const std::int64_t* starts = nullptr;  // (n_queries + 1)
  const std::int64_t* rows = nullptr;
  std::size_t n_entries = 0;
  const double* distances = nullptr;
  const double* bandwidths = nullptr;      // (n_queries)
  const double* kernel_values = nullptr;   // (n_entries) or null for the model's kernel
  const std::int64_t* own_rows = nullptr;  // (n_queries) training row of each query, or null
  bool leave_out = false;                  // exclude the own row from the fit
};

struct LocalFits {
  std::vector<double> values;     // (n_queries, n_outputs); NaN if no row has weight
  std::vector<double> noise;      // (n_queries)
  std::vector<double> leverages;  // (n_queries) if own_rows is given
  std::vector<double> gradients;  // (n_queries, n_outputs, n_features) if with_gradients
};

std::size_t count_terms(int degree, std::size_t n_features);

LocalFits fit_local(const LocalModel& model, const Neighborhoods& neighborhoods,
                    bool with_gradients, int n_threads);

}  // namespace spinney::neighbors
