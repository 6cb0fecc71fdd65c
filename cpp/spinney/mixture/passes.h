// Passes of EM over the rows. One pass computes responsibilities and adds them to the moments, so
// that responsibilities are not stored.
//
//   shift     subtracted from every row, so that a large offset does not cost precision; means are
//             relative to it
//   moments   Σ r, Σ r (x − μ) and Σ r (x − μ)(x − μ)ᵀ with the means *before* the M step
//   overlaps  Σ r_k r_l over rows. For a tied covariance, Σ_k r_k (x − μ_k)(x − μ_k)ᵀ equals
//             (x − m)(x − m)ᵀ + Σ_{k<l} r_k r_l (μ_k − μ_l)(μ_k − μ_l)ᵀ with m = Σ_k r_k μ_k. One
//             matrix of products therefore suffices for all components, without cancellation
//
// Rows are processed in chunks of a fixed size, and sums of chunks are added in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "spinney/common/watch.h"

namespace spinney::mixture {

enum class CovarianceType { full, tied, diag };

template <class T>
struct Rows {
  const T* x = nullptr;
  std::size_t n_rows = 0;
  std::size_t n_features = 0;
  std::ptrdiff_t row_stride = 0;  // in values
  std::ptrdiff_t column_stride = 0;
  const double* shift = nullptr;    // (n_features)
  const double* weights = nullptr;  // (n_rows), or null for weights of 1
};

struct Model {
  CovarianceType covariance_type = CovarianceType::full;
  std::size_t n_components = 0;
  const double* offsets = nullptr;  // (n_components) log of weight × constant factor of the density
  const double* means = nullptr;    // (n_components, n_features), minus the shift
  // P with P Pᵀ = Σ⁻¹: (n_components, n_features, n_features) for full, one matrix for tied,
  // (n_components, n_features) for diag.
  const double* factors = nullptr;
};

// Given responsibilities: labels of rows (negative for rows without component), or a matrix.
struct KnownResponsibilities {
  const std::int32_t* labels = nullptr;      // (n_rows)
  const double* responsibilities = nullptr;  // (n_rows, n_components)
};

struct Moments {
  double log_likelihood = 0;   // Σ weight · log density
  std::vector<double> counts;  // (n_components)
  std::vector<double> sums;    // (n_components, n_features)
  // (n_components, n_features, n_features) for full, (n_features, n_features) for tied,
  // (n_components, n_features) for diag
  std::vector<double> products;
  std::vector<double> overlaps;  // (n_components, n_components) for tied
};

// One E step and the sums for the next M step. Given responsibilities replace the E step, and only
// the means of the model are used.
template <class T>
Moments sum_moments(const Rows<T>& rows, const Model& model, const KnownResponsibilities& known,
                    int n_threads, common::Watch& watch);

// Output arrays; each may be null.
struct Scores {
  double* log_densities = nullptr;     // (n_rows)
  double* responsibilities = nullptr;  // (n_rows, n_components)
  std::int64_t* labels = nullptr;      // (n_rows) component with the largest responsibility
};

// Computes scores of rows without weights.
template <class T>
void score_rows(const Rows<T>& rows, const Model& model, const Scores& out, int n_threads,
                common::Watch& watch);

}  // namespace spinney::mixture
