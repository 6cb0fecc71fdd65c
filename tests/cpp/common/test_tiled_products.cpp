#include <algorithm>
#include <vector>

#include "spinney/common/random.h"
#include "spinney/common/tiled_products.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::common;

TEST(tiled_products_match_naive_sums) {
  for (const std::size_t n_columns : {1, 3, 4, 5, 9, 13}) {
    for (const std::size_t n_rows : {8, 24, 256}) {
      const std::size_t stride = n_rows + 8, width = round_to_tiles(n_columns);
      Stream stream(2, Purpose::rows, n_columns * 1000 + n_rows);
      std::vector<double> left(width * stride), right(width * stride), weights(n_rows);
      for (double& weight : weights) weight = stream.uniform();
      for (std::size_t j = 0; j < n_columns; ++j) {
        for (std::size_t row = 0; row < n_rows; ++row) {
          right[j * stride + row] = stream.uniform() - 0.5;
          left[j * stride + row] = weights[row] * right[j * stride + row];
        }
      }
      const ProductBlock block{left.data(), right.data(), n_columns, n_rows, stride};
      const std::size_t n_tile_rows = count_tile_rows(n_columns);
      std::vector<double> tiles(tiles_size(n_columns), 0.0), by_row = tiles;
      for (int repeat = 0; repeat < 2; ++repeat) {
        add_tiled_products(block, 0, n_tile_rows, tiles.data());
        for (std::size_t row = n_tile_rows; row-- > 0;) {
          add_tiled_products(block, row, row + 1, by_row.data());
        }
      }
      CHECK(tiles == by_row);
      std::vector<double> matrix(n_columns * n_columns);
      unpack_tiles(tiles.data(), n_columns, matrix.data());
      for (std::size_t a = 0; a < n_columns; ++a) {
        for (std::size_t b = 0; b < n_columns; ++b) {
          double sum = 0;
          for (std::size_t row = 0; row < n_rows; ++row) {
            sum += weights[row] * right[a * stride + row] * right[b * stride + row];
          }
          CHECK_NEAR(matrix[a * n_columns + b], 2 * sum, 1e-12);
        }
      }
    }
  }
}
