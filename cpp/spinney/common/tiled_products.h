// Symmetric matrices of products of columns, Σ left_a right_b over rows, for blocks of rows.
// Columns are in groups of four. A *tile* has the products of two groups: 4 × 4 sums of eight lanes
// each. Only tiles on and right of the diagonal exist, row by row of tiles.
#pragma once

#include <cstddef>

namespace spinney::common {

inline constexpr std::size_t tile_side = 4;
inline constexpr std::size_t lanes_per_sum = 8;
inline constexpr std::size_t sums_per_tile = tile_side * tile_side;

constexpr std::size_t round_to_tiles(std::size_t n_columns) {
  return (n_columns + tile_side - 1) / tile_side * tile_side;
}
constexpr std::size_t count_tile_rows(std::size_t n_columns) {
  return round_to_tiles(n_columns) / tile_side;
}
constexpr std::size_t count_tiles(std::size_t n_columns) {
  const std::size_t n = count_tile_rows(n_columns);
  return n * (n + 1) / 2;
}
// The number of values of all tiles, with lanes.
constexpr std::size_t tiles_size(std::size_t n_columns) {
  return count_tiles(n_columns) * sums_per_tile * lanes_per_sum;
}

// A block of rows: column j of a matrix starts at j * stride. The matrices have round_to_tiles(
// n_columns) columns, all finite, and n_rows is a multiple of eight.
struct ProductBlock {
  const double* left;
  const double* right;
  std::size_t n_columns;
  std::size_t n_rows;
  std::size_t stride;
};

// Adds the products of a block to the tiles in the rows of tiles first … last - 1. `tiles` is the
// start of all tiles.
void add_tiled_products(const ProductBlock& block, std::size_t first, std::size_t last,
                        double* tiles);

// Adds the lanes of all sums and writes the full symmetric n_columns × n_columns matrix.
void unpack_tiles(const double* tiles, std::size_t n_columns, double* out);

}  // namespace spinney::common
