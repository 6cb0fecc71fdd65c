// Kernels of linear models for a block of rows. A block is column-major: columns have `block_rows`
// values and are `column_stride` apart, so that a vector has the same column of eight rows. A sum
// over rows has eight lanes, which are added at the end, so that all instruction sets give the same
// bits.
#pragma once

#include <cstddef>
#include <vector>

#include "spinney/common/tiled_products.h"
#include "spinney/linear/design.h"

namespace spinney::linear {

inline constexpr std::size_t block_rows = 256;
// Lanes of a sum over rows.
inline constexpr std::size_t n_lanes = common::lanes_per_sum;
// Not a power of two, since columns would then map to the same cache sets.
inline constexpr std::size_t column_stride = block_rows + n_lanes;

using common::round_to_tiles;

// Reads rows first … first + n - 1 and subtracts the centre. The other rows of the block are zero.
void read_block(const DenseRows<double>& rows, std::size_t first, std::size_t n,
                const double* centre, double* columns);
void read_block(const DenseRows<float>& rows, std::size_t first, std::size_t n,
                const double* centre, double* columns);

// out = columns × by, where `by` has a factor for each row.
void scale_rows(const double* columns, const double* by, std::size_t n_columns, double* out);

// A block whose products common::add_tiled_products() computes.
inline common::ProductBlock product_block(const double* left, const double* right,
                                          std::size_t n_columns) {
  return {left, right, n_columns, block_rows, column_stride};
}

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

}  // namespace spinney::linear
