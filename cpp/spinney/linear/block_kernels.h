// Kernels of linear models for a block of rows. A block is column-major: columns have `block_rows`
// values and are `column_stride` apart, so that a vector has the same column of eight rows. A sum
// over rows has eight lanes, which are added at the end, so that all instruction sets give the same
// bits.
#pragma once

#include <cstddef>
#include <vector>

#include "spinney/common/lanes.h"
#include "spinney/linear/design.h"

namespace spinney::linear {

inline constexpr std::size_t block_rows = 256;
// Not a power of two, since columns would then map to the same cache sets.
inline constexpr std::size_t column_stride = block_rows + common::n_lanes;
// Products are computed in tiles of tile_side × tile_side columns.
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

// Reads rows first … first + n - 1 and subtracts the centre. The other rows of the block are zero.
void read_block(const DenseRows<double>& rows, std::size_t first, std::size_t n,
                const double* centre, double* columns);
void read_block(const DenseRows<float>& rows, std::size_t first, std::size_t n,
                const double* centre, double* columns);

// out = columns × by, where `by` has a factor for each row.
void scale_rows(const double* columns, const double* by, std::size_t n_columns, double* out);

// tiles += Σ left_a right_b over rows, for the rows of tiles from … to - 1, on and right of the
// diagonal. Matrices must have columns up to a multiple of tile_side.
void add_products(const double* left, const double* right, std::size_t n_columns, std::size_t from,
                  std::size_t to, double* tiles);
// Adds the lanes of the tiles and writes the full symmetric n_columns × n_columns matrix.
void spread_products(const double* tiles, std::size_t n_columns, double* out);

// out = Σ_j weights_j column_j
void combine_columns(const double* columns, const double* weights, std::size_t n_columns,
                     double* out);
// The same for four weight vectors at once, `stride` apart. `out` has four columns.
void combine_columns_by_four(const double* columns, const double* weights, std::size_t stride,
                             std::size_t n_columns, double* out);
// lanes_j += Σ factors column_j over rows
void add_sums(const double* columns, const double* factors, std::size_t n_columns, double* lanes);

// Logistic loss of scores z and targets y in [0, 1], times the weights of rows: lanes of the loss,
// first derivatives and, unless null, second derivatives with respect to z.
void measure_logistic(const double* z, const double* y, const double* weights, double* loss_lanes,
                      double* slopes, double* curvatures);

// Replaces scores (n_classes, column_stride) by softmax probabilities.
void softmax(double* scores, std::size_t n_classes, double* log_sums);

// others = sum of the probabilities of the classes that are not the row's label. `losses` contains
// log_sum - score of the label. Where that difference is inaccurate, it is computed from the odds.
void measure_own_class(const double* probabilities, std::size_t n_classes, const double* labels,
                       double* losses, double* others);

// out_j += Σ factors_i row_i,j over eight rows, for tables with many columns.
void add_eight_rows(const double* rows, std::ptrdiff_t row_stride, const double* factors,
                    std::size_t n_columns, double* out);
void add_eight_rows(const float* rows, std::ptrdiff_t row_stride, const double* factors,
                    std::size_t n_columns, double* out);

// The first value of a row of tiles.
inline std::size_t tile_offset(std::size_t row_of_tiles, std::size_t n_columns) {
  const std::size_t n_sides = round_to_tiles(n_columns) / tile_side;
  const std::size_t n_before = row_of_tiles * n_sides - row_of_tiles * (row_of_tiles - 1) / 2;
  return (row_of_tiles == 0 ? 0 : n_before) * tile_side * tile_side * common::n_lanes;
}

}  // namespace spinney::linear
