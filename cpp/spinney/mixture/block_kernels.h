// Kernels of EM for one block of rows. A block is column-major with columns of `block_rows` values,
// so that a vector has the same feature of eight rows:
//
//   differences  feature − mean
//   factor       the upper triangle of P with P Pᵀ = Σ⁻¹, packed: for every four columns of P, four
//                values of each row down to the diagonal
//   lanes        a sum over rows as eight partial sums, which are added at the end of a chunk
//   tile         4 × 4 sums of a matrix of products; only tiles on and above the diagonal exist
#pragma once

#include <cstddef>

#include "spinney/common/tiled_products.h"

namespace spinney::mixture {

inline constexpr std::size_t block_rows = 256;
// Lanes of a sum over rows.
inline constexpr std::size_t n_lanes = common::lanes_per_sum;

using common::tile_side;

// The number of sums of the tiles of n_features columns, and the size of a packed factor.
inline std::size_t packed_size(std::size_t n_features) {
  return common::count_tiles(n_features) * common::sums_per_tile;
}

void pack_factor(const double* factor, std::size_t n_features, double* packed);

// out = columns − mean
void subtract_mean(const double* columns, const double* mean, std::size_t n_features, double* out);

// norms = |Pᵀ d|² for the differences d of each row. There must be a multiple of four columns, all
// finite.
void measure_full(const double* differences, const double* packed, std::size_t n_features,
                  double* norms);
// out = Pᵀ d, with a multiple of four columns.
void whiten(const double* differences, const double* packed, std::size_t n_features, double* out);
// norms = Σ ((column − mean) scale)². Scales are one if `scales` is null.
void measure_diagonal(const double* columns, const double* mean, const double* scales,
                      std::size_t n_features, double* norms);

// Replaces norms by offset − norm / 2, the log of weight × density of a component.
void norms_to_logs(double offset, double* norms);

// Replaces logs (n_components, block_rows) by responsibilities, exp(log − log-sum) × weight of the
// row. Writes the log-sums to log_densities.
void normalise_logs(double* logs, std::size_t n_components, const double* weights,
                    double* log_densities);

// Sets responsibilities of at most `least` to zero.
void drop_small(double least, std::size_t n, double* responsibilities);

// lanes += Σ weight · value over rows
void add_weighted(const double* weights, const double* values, double* lanes);

// Adds to lanes of Σ r, then Σ r d for each feature, then Σ r d² if `squares`, where r are
// responsibilities and d = column − mean.
void add_moments(const double* columns, const double* mean, const double* responsibilities,
                 std::size_t n_features, bool squares, double* lanes);

void add_lanes(const double* lanes, std::size_t n_sums, double* out);

}  // namespace spinney::mixture
