// What linear models compute over a block of rows. A block has its rows as columns of `block_rows`
// numbers each, `column_stride` apart, so that a vector holds the same column of eight rows. Sums
// over rows are kept as eight *lanes* each and added up in the end: the same bits for every
// instruction set.
#pragma once

#include <cstddef>
#include <vector>

#include "spinney/common/lanes.h"
#include "spinney/linear/design.h"

namespace spinney::linear {

inline constexpr std::size_t block_rows = 256;
// Not a power of two: columns would share the same few places of the cache.
inline constexpr std::size_t column_stride = block_rows + common::n_lanes;
// Products are added in tiles of so many columns by so many.
inline constexpr std::size_t tile_side = 4;

inline constexpr std::size_t round_to_tiles(std::size_t n_columns) {
  return (n_columns + tile_side - 1) / tile_side * tile_side;
}
inline constexpr std::size_t count_tiles(std::size_t n_columns) {
  const std::size_t n_sides = round_to_tiles(n_columns) / tile_side;
  return n_sides * (n_sides + 1) / 2;
}
inline constexpr std::size_t lanes_of_products(std::size_t n_columns) {
  return count_tiles(n_columns) * tile_side * tile_side * common::n_lanes;
}

// Reads rows first … first + n - 1 less the centre; rows up to block_rows become zero.
void read_block(const DenseRows<double>& rows, std::size_t first, std::size_t n,
                const double* centre, double* columns);
void read_block(const DenseRows<float>& rows, std::size_t first, std::size_t n,
                const double* centre, double* columns);

// out = columns times a number for each row.
void scale_rows(const double* columns, const double* by, std::size_t n_columns, double* out);

// Tiles of lanes += Σ left_a right_b over rows, for the tiles of rows of tiles from … to - 1, on
// and right of the diagonal. Column numbers are rounded up to whole tiles.
void add_products(const double* left, const double* right, std::size_t n_columns, std::size_t from,
                  std::size_t to, double* tiles);
// … as a full symmetric matrix of n_columns by n_columns.
void spread_products(const double* tiles, std::size_t n_columns, double* out);

// out = Σ_j weights_j column_j
void combine_columns(const double* columns, const double* weights, std::size_t n_columns,
                     double* out);
// The same for four sets of weights at once, `n_columns` numbers each, `stride` apart; out has four
// columns.
void combine_columns_by_four(const double* columns, const double* weights, std::size_t stride,
                             std::size_t n_columns, double* out);
// lanes_j += Σ factors column_j over rows
void add_sums(const double* columns, const double* factors, std::size_t n_columns, double* lanes);

// Logistic loss of scores z and targets y in [0, 1]: lanes of the loss, the derivative by z and,
// unless null, the second one, each times the row's weight.
void measure_logistic(const double* z, const double* y, const double* weights, double* loss_lanes,
                      double* slopes, double* curvatures);

// Multinomial loss: scores (n_classes, column_stride) become probabilities.
void share_softmax(double* scores, std::size_t n_classes, double* log_sums);

// From probabilities: the sum of those of the other classes than the row's own. `losses` come in as
// log-sum minus own score and go out without the rounding of that difference where it matters.
void measure_own_class(const double* probabilities, std::size_t n_classes, const double* labels,
                       double* losses, double* others);

// Of rows that are too wide for blocks: out_j += Σ factors_i row_i,j over eight rows.
void add_eight_rows(const double* rows, std::ptrdiff_t row_stride, const double* factors,
                    std::size_t n_columns, double* out);
void add_eight_rows(const float* rows, std::ptrdiff_t row_stride, const double* factors,
                    std::size_t n_columns, double* out);

// A row's part of a tile's lanes has a place that depends on the tile alone.
inline std::size_t tile_offset(std::size_t row_of_tiles, std::size_t n_columns) {
  const std::size_t n_sides = round_to_tiles(n_columns) / tile_side;
  const std::size_t before = row_of_tiles * n_sides - row_of_tiles * (row_of_tiles - 1) / 2;
  return (row_of_tiles == 0 ? 0 : before) * tile_side * tile_side * common::n_lanes;
}

}  // namespace spinney::linear
