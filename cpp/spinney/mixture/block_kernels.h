// What EM computes over one block of rows. A block is read into columns of `block_rows` numbers
// each, one column a feature, so that a vector holds the same feature of eight rows:
//
//   differences  feature − mean, column by column
//   factor       the upper triangle of P with P Pᵀ = Σ⁻¹, packed: for every four columns of P, row
//                by row down to the diagonal, four numbers
//   lanes        a sum over rows as eight sums, added up when a piece of the rows is done
//   tile         four by four lanes of a matrix of products; tiles on and above the diagonal
#pragma once

#include <cstddef>

#include "spinney/common/lanes.h"

namespace spinney::mixture {

inline constexpr std::size_t block_rows = 256;
inline constexpr std::size_t tile_side = 4;

inline std::size_t count_tiles(std::size_t n_columns) {
  const std::size_t n_sides = (n_columns + tile_side - 1) / tile_side;
  return n_sides * (n_sides + 1) / 2;
}

inline std::size_t packed_size(std::size_t n_features) {
  return count_tiles(n_features) * tile_side * tile_side;
}

void pack_factor(const double* factor, std::size_t n_features, double* packed);

// out = columns − mean
void subtract_mean(const double* columns, const double* mean, std::size_t n_features, double* out);

// norms = |Pᵀ d|² of each row's differences d. Columns up to a multiple of four must exist and be
// finite.
void measure_full(const double* differences, const double* packed, std::size_t n_features,
                  double* norms);
// out = Pᵀ d, columns up to a multiple of four.
void whiten(const double* differences, const double* packed, std::size_t n_features, double* out);
// norms = Σ ((column − mean) scale)²; scales of nullptr are one.
void measure_diagonal(const double* columns, const double* mean, const double* scales,
                      std::size_t n_features, double* norms);

// Of norms, in place: logs of the components' densities times weights.
void norms_to_logs(double offset, double* norms);

// logs (n_components, block_rows) become shares: exp(log − log of their sum) times the row's
// weight. The logs of the sums go to log_densities.
void share_out(double* logs, std::size_t n_components, const double* weights,
               double* log_densities);

// Shares of `least` or less become zero.
void drop_small(double least, std::size_t n, double* shares);

// lanes += Σ weight · value over rows
void add_weighted(const double* weights, const double* values, double* lanes);

// Tiles of lanes += Σ weighted_a · plain_b over `n_rows` rows (a multiple of eight).
void add_products(const double* weighted, const double* plain, std::size_t n_columns,
                  std::size_t n_rows, double* tiles);

// (lanes of Σ s, then of Σ s d for each feature, then, if asked for, of Σ s d²), d = column − mean.
void add_moments(const double* columns, const double* mean, const double* shares,
                 std::size_t n_features, bool squares, double* lanes);

void add_up_lanes(const double* lanes, std::size_t n_sums, double* out);

}  // namespace spinney::mixture
