// Passes of EM over the rows. In one pass every row's responsibilities are found and its part of
// the moments is added at once: what is kept is the moments, not the responsibilities.
//
//   shift     taken from every row first, so that large offsets cost no digits; means are relative
//             to it
//   moments   Σ r, Σ r (x − μ) and the like about the *present* means, which are close to the next
//   overlaps  Σ r_k r_l over rows: with a common covariance Σ_k r_k (x − μ_k)(x − μ_k)ᵀ is
//             (x − m)(x − m)ᵀ + Σ_{k<l} r_k r_l (μ_k − μ_l)(μ_k − μ_l)ᵀ, m = Σ_k r_k μ_k, so that
//             one matrix of products serves all components and nothing cancels
//
// Rows are cut into pieces of a fixed size, whose sums are added in their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "spinney/common/watch.h"

namespace spinney::mixture {

enum class CovarianceKind { full, tied, diag };

template <class T>
struct Rows {
  const T* x = nullptr;
  std::size_t n_rows = 0;
  std::size_t n_features = 0;
  std::ptrdiff_t row_stride = 0;  // in numbers
  std::ptrdiff_t column_stride = 0;
  const double* shift = nullptr;    // (n_features)
  const double* weights = nullptr;  // (n_rows), or one each
};

struct Model {
  CovarianceKind kind = CovarianceKind::full;
  std::size_t n_components = 0;
  const double* offsets = nullptr;  // (n_components) log of weight and of the density's constant
  const double* means = nullptr;    // (n_components, n_features), less the shift
  // P with P Pᵀ = Σ⁻¹: (n_components, n_features, n_features) for full, one matrix for tied,
  // (n_components, n_features) for diag.
  const double* factors = nullptr;
};

// Responsibilities that are known: a label for each row (negative: nobody's), or all of them.
struct Shares {
  const std::int32_t* labels = nullptr;  // (n_rows)
  const double* shares = nullptr;        // (n_rows, n_components)
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

// One E step and the sums of the M step that follows it. With `known` shares there is no E step,
// and the model's means alone are read.
template <class T>
Moments sum_moments(const Rows<T>& rows, const Model& model, const Shares& known, int n_threads,
                    common::Watch& watch);

// Where to write what is asked for; each may be nullptr.
struct Scores {
  double* log_densities = nullptr;     // (n_rows)
  double* responsibilities = nullptr;  // (n_rows, n_components)
  std::int64_t* labels = nullptr;      // (n_rows) the component with the largest one
};

// Rows without weights.
template <class T>
void score_rows(const Rows<T>& rows, const Model& model, const Scores& out, int n_threads,
                common::Watch& watch);

}  // namespace spinney::mixture
