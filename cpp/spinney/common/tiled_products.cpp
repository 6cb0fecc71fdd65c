#include "spinney/common/tiled_products.h"

#include "spinney/common/dispatch.h"
#include "spinney/common/simd.h"

namespace spinney::common {

namespace {

static_assert(lane_count<Doubles8> == lanes_per_sum);

SPINNEY_INLINE void add_products_kernel(const ProductBlock& block, std::size_t first,
                                        std::size_t last, double* tiles) {
  const std::size_t n_tile_rows = count_tile_rows(block.n_columns), stride = block.stride;
  for (std::size_t a = first; a < last; ++a) {
    const std::size_t n_before = a == 0 ? 0 : a * n_tile_rows - a * (a - 1) / 2;
    double* tile = tiles + n_before * sums_per_tile * lanes_per_sum;
    for (std::size_t b = a; b < n_tile_rows; ++b) {
      Doubles8 sums[tile_side][tile_side];
      for (std::size_t i = 0; i < tile_side; ++i) {
        for (std::size_t j = 0; j < tile_side; ++j) {
          sums[i][j] = load<Doubles8>(tile + (i * tile_side + j) * lanes_per_sum);
        }
      }
      const double* const left = block.left + a * tile_side * stride;
      const double* const right = block.right + b * tile_side * stride;
      for (std::size_t row = 0; row < block.n_rows; row += lanes_per_sum) {
        Doubles8 factors[tile_side];
        for (std::size_t j = 0; j < tile_side; ++j) {
          factors[j] = load<Doubles8>(right + j * stride + row);
        }
        for (std::size_t i = 0; i < tile_side; ++i) {
          const Doubles8 values = load<Doubles8>(left + i * stride + row);
          for (std::size_t j = 0; j < tile_side; ++j) sums[i][j] += values * factors[j];
        }
      }
      for (std::size_t i = 0; i < tile_side; ++i) {
        for (std::size_t j = 0; j < tile_side; ++j) {
          store(tile, sums[i][j]);
          tile += lanes_per_sum;
        }
      }
    }
  }
}

}  // namespace

void add_tiled_products(const ProductBlock& block, std::size_t first, std::size_t last,
                        double* tiles) {
  dispatch<add_products_kernel>(block, first, last, tiles);
}

void unpack_tiles(const double* tiles, std::size_t n_columns, double* out) {
  const std::size_t n_tile_rows = count_tile_rows(n_columns);
  for (std::size_t a = 0; a < n_tile_rows; ++a) {
    for (std::size_t b = a; b < n_tile_rows; ++b) {
      for (std::size_t i = a * tile_side; i < (a + 1) * tile_side; ++i) {
        for (std::size_t j = b * tile_side; j < (b + 1) * tile_side; ++j) {
          const double sum = sum_eight(tiles);
          tiles += lanes_per_sum;
          if (i >= n_columns || j >= n_columns || j < i) continue;
          out[i * n_columns + j] = out[j * n_columns + i] = sum;
        }
      }
    }
  }
}

}  // namespace spinney::common
