#include "spinney/linear/block_kernels.h"

#include "spinney/common/dispatch.h"
#include "spinney/common/exp.h"
#include "spinney/common/log.h"

namespace spinney::linear {

using common::Lanes;
using common::load;
using common::n_lanes;
using common::store;

namespace {

template <class T>
SPINNEY_INLINE void read_rows(const DenseRows<T>& rows, std::size_t first, std::size_t n,
                              const double* centre, double* columns) {
  const std::size_t d = rows.n_features;
  const T* const from = rows.values + static_cast<std::ptrdiff_t>(first) * rows.row_stride;
  if (rows.column_stride == 1) {
    // Eight rows at a time, so that writes are contiguous.
    constexpr std::size_t rows_at_once = 8;
    std::size_t row = 0;
    for (; row + rows_at_once <= n; row += rows_at_once) {
      const T* const x = from + static_cast<std::ptrdiff_t>(row) * rows.row_stride;
      for (std::size_t j = 0; j < d; ++j) {
        double eight[rows_at_once];
        for (std::size_t i = 0; i < rows_at_once; ++i) {
          eight[i] = static_cast<double>(
              x[static_cast<std::ptrdiff_t>(i) * rows.row_stride + static_cast<std::ptrdiff_t>(j)]);
        }
        store(columns + j * column_stride + row, load(eight) - centre[j]);
      }
    }
    for (; row < n; ++row) {
      const T* const x = from + static_cast<std::ptrdiff_t>(row) * rows.row_stride;
      for (std::size_t j = 0; j < d; ++j) {
        columns[j * column_stride + row] = static_cast<double>(x[j]) - centre[j];
      }
    }
  } else {
    for (std::size_t j = 0; j < d; ++j) {
      const T* const x = from + static_cast<std::ptrdiff_t>(j) * rows.column_stride;
      double* const out = columns + j * column_stride;
      for (std::size_t row = 0; row < n; ++row) {
        out[row] =
            static_cast<double>(x[static_cast<std::ptrdiff_t>(row) * rows.row_stride]) - centre[j];
      }
    }
  }
  if (n < block_rows) {
    for (std::size_t j = 0; j < d; ++j) {
      for (std::size_t row = n; row < block_rows; ++row) columns[j * column_stride + row] = 0;
    }
  }
}

}  // namespace

SPINNEY_KERNEL void read_block(const DenseRows<double>& rows, std::size_t first, std::size_t n,
                               const double* centre, double* columns) {
  read_rows(rows, first, n, centre, columns);
}

SPINNEY_KERNEL void read_block(const DenseRows<float>& rows, std::size_t first, std::size_t n,
                               const double* centre, double* columns) {
  read_rows(rows, first, n, centre, columns);
}

SPINNEY_KERNEL void scale_rows(const double* columns, const double* by, std::size_t n_columns,
                               double* out) {
  for (std::size_t j = 0; j < n_columns; ++j) {
    for (std::size_t row = 0; row < block_rows; row += n_lanes) {
      store(out + j * column_stride + row,
            load(columns + j * column_stride + row) * load(by + row));
    }
  }
}

SPINNEY_KERNEL void add_products(const double* left, const double* right, std::size_t n_columns,
                                 std::size_t from, std::size_t to, double* tiles) {
  const std::size_t n_sides = round_to_tiles(n_columns) / tile_side;
  for (std::size_t a = from; a < to; ++a) {
    double* tile = tiles + tile_offset(a, n_columns);
    for (std::size_t b = a; b < n_sides; ++b) {
      Lanes sums[tile_side][tile_side];
      for (std::size_t i = 0; i < tile_side; ++i) {
        for (std::size_t j = 0; j < tile_side; ++j) {
          sums[i][j] = load(tile + (i * tile_side + j) * n_lanes);
        }
      }
      const double* const l = left + a * tile_side * column_stride;
      const double* const r = right + b * tile_side * column_stride;
      for (std::size_t row = 0; row < block_rows; row += n_lanes) {
        Lanes factors[tile_side];
        for (std::size_t j = 0; j < tile_side; ++j) factors[j] = load(r + j * column_stride + row);
        for (std::size_t i = 0; i < tile_side; ++i) {
          const Lanes values = load(l + i * column_stride + row);
          for (std::size_t j = 0; j < tile_side; ++j) sums[i][j] += values * factors[j];
        }
      }
      for (std::size_t i = 0; i < tile_side; ++i) {
        for (std::size_t j = 0; j < tile_side; ++j) {
          store(tile, sums[i][j]);
          tile += n_lanes;
        }
      }
    }
  }
}

void spread_products(const double* tiles, std::size_t n_columns, double* out) {
  const std::size_t n_sides = round_to_tiles(n_columns) / tile_side;
  for (std::size_t a = 0; a < n_sides; ++a) {
    for (std::size_t b = a; b < n_sides; ++b) {
      for (std::size_t i = a * tile_side; i < (a + 1) * tile_side; ++i) {
        for (std::size_t j = b * tile_side; j < (b + 1) * tile_side; ++j) {
          const double sum = common::add_up_lanes(tiles);
          tiles += n_lanes;
          if (i >= n_columns || j >= n_columns || j < i) continue;
          out[i * n_columns + j] = out[j * n_columns + i] = sum;
        }
      }
    }
  }
}

SPINNEY_KERNEL void combine_columns(const double* columns, const double* weights,
                                    std::size_t n_columns, double* out) {
  constexpr std::size_t rows_at_once = 4 * n_lanes;
  for (std::size_t row = 0; row < block_rows; row += rows_at_once) {
    Lanes a = {}, b = {}, c = {}, d = {};
    const double* x = columns + row;
    for (std::size_t j = 0; j < n_columns; ++j) {
      a += load(x) * weights[j];
      b += load(x + n_lanes) * weights[j];
      c += load(x + 2 * n_lanes) * weights[j];
      d += load(x + 3 * n_lanes) * weights[j];
      x += column_stride;
    }
    store(out + row, a);
    store(out + row + n_lanes, b);
    store(out + row + 2 * n_lanes, c);
    store(out + row + 3 * n_lanes, d);
  }
}

SPINNEY_KERNEL void combine_columns_by_four(const double* columns, const double* weights,
                                            std::size_t stride, std::size_t n_columns,
                                            double* out) {
  constexpr std::size_t rows_at_once = 4;
  const double *const w0 = weights, *const w1 = w0 + stride, *const w2 = w1 + stride,
                      *const w3 = w2 + stride;
  for (std::size_t row = 0; row < block_rows; row += rows_at_once * n_lanes) {
    Lanes sums[4][rows_at_once] = {};
    const double* x = columns + row;
    for (std::size_t j = 0; j < n_columns; ++j) {
      for (std::size_t lane = 0; lane < rows_at_once; ++lane) {
        const Lanes values = load(x + lane * n_lanes);
        sums[0][lane] += values * w0[j];
        sums[1][lane] += values * w1[j];
        sums[2][lane] += values * w2[j];
        sums[3][lane] += values * w3[j];
      }
      x += column_stride;
    }
    for (std::size_t k = 0; k < 4; ++k) {
      for (std::size_t lane = 0; lane < rows_at_once; ++lane) {
        store(out + k * column_stride + row + lane * n_lanes, sums[k][lane]);
      }
    }
  }
}

namespace {

template <class T>
SPINNEY_INLINE void add_eight(const T* rows, std::ptrdiff_t row_stride, const double* factors,
                              std::size_t n_columns, double* out) {
  const T* const r0 = rows;
  const T* const r1 = r0 + row_stride;
  const T* const r2 = r1 + row_stride;
  const T* const r3 = r2 + row_stride;
  const T* const r4 = r3 + row_stride;
  const T* const r5 = r4 + row_stride;
  const T* const r6 = r5 + row_stride;
  const T* const r7 = r6 + row_stride;
  for (std::size_t j = 0; j < n_columns; ++j) {
    const double low =
        (factors[0] * static_cast<double>(r0[j]) + factors[1] * static_cast<double>(r1[j])) +
        (factors[2] * static_cast<double>(r2[j]) + factors[3] * static_cast<double>(r3[j]));
    const double high =
        (factors[4] * static_cast<double>(r4[j]) + factors[5] * static_cast<double>(r5[j])) +
        (factors[6] * static_cast<double>(r6[j]) + factors[7] * static_cast<double>(r7[j]));
    out[j] += low + high;
  }
}

}  // namespace

SPINNEY_KERNEL void add_eight_rows(const double* rows, std::ptrdiff_t row_stride,
                                   const double* factors, std::size_t n_columns, double* out) {
  add_eight(rows, row_stride, factors, n_columns, out);
}

SPINNEY_KERNEL void add_eight_rows(const float* rows, std::ptrdiff_t row_stride,
                                   const double* factors, std::size_t n_columns, double* out) {
  add_eight(rows, row_stride, factors, n_columns, out);
}

SPINNEY_KERNEL void add_sums(const double* columns, const double* factors, std::size_t n_columns,
                             double* lanes) {
  for (std::size_t j = 0; j < n_columns; ++j) {
    const double* const x = columns + j * column_stride;
    Lanes even = load(lanes + j * n_lanes), odd = {};
    for (std::size_t row = 0; row < block_rows; row += 2 * n_lanes) {
      even += load(x + row) * load(factors + row);
      odd += load(x + row + n_lanes) * load(factors + row + n_lanes);
    }
    store(lanes + j * n_lanes, even + odd);
  }
}

SPINNEY_KERNEL void measure_logistic(const double* z, const double* y, const double* weights,
                                     double* loss_lanes, double* slopes, double* curvatures) {
  double losses[block_rows], curves[block_rows];
  for (std::size_t row = 0; row < block_rows; ++row) {
    const double size = z[row] < 0 ? -z[row] : z[row];
    const double e = common::exp(-size);
    const double one_plus = 1 + e;
    const double inverse = 1 / one_plus;
    // Accurate for small losses, since no nearly equal values are subtracted:
    // log(1 + e) = log(one_plus) + the rounding error of one_plus, divided by it.
    const double log_sum = common::log_normal(one_plus) + (e - (one_plus - 1)) * inverse;
    const double target_gap = z[row] < 0 ? y[row] : 1 - y[row];
    const double smaller_p = e * inverse;  // probability of the less likely class
    losses[row] = weights[row] * (log_sum + target_gap * size);
    slopes[row] = weights[row] * (z[row] < 0 ? smaller_p - y[row] : (1 - y[row]) - smaller_p);
    curves[row] = weights[row] * (e * inverse * inverse);
  }
  Lanes sum = load(loss_lanes);
  for (std::size_t row = 0; row < block_rows; row += n_lanes) sum += load(losses + row);
  store(loss_lanes, sum);
  if (curvatures == nullptr) return;
  for (std::size_t row = 0; row < block_rows; ++row) curvatures[row] = curves[row];
}

SPINNEY_KERNEL void softmax(double* scores, std::size_t n_classes, double* log_sums) {
  double highest[block_rows], total[block_rows];
  for (std::size_t row = 0; row < block_rows; ++row) {
    highest[row] = scores[row];
    total[row] = 0;
  }
  for (std::size_t k = 1; k < n_classes; ++k) {
    const double* const score = scores + k * column_stride;
    for (std::size_t row = 0; row < block_rows; ++row) {
      highest[row] = score[row] > highest[row] ? score[row] : highest[row];
    }
  }
  for (std::size_t k = 0; k < n_classes; ++k) {
    double* const score = scores + k * column_stride;
    for (std::size_t row = 0; row < block_rows; ++row) {
      score[row] = common::exp(score[row] - highest[row]);
      total[row] += score[row];
    }
  }
  for (std::size_t row = 0; row < block_rows; ++row) {
    log_sums[row] = highest[row] + common::log_normal(total[row]);
    total[row] = 1 / total[row];
  }
  for (std::size_t k = 0; k < n_classes; ++k) {
    double* const score = scores + k * column_stride;
    for (std::size_t row = 0; row < block_rows; ++row) score[row] *= total[row];
  }
}

SPINNEY_KERNEL void measure_own_class(const double* probabilities, std::size_t n_classes,
                                      const double* labels, double* losses, double* others) {
  double own[block_rows];
  for (std::size_t row = 0; row < block_rows; ++row) own[row] = others[row] = 0;
  for (std::size_t k = 0; k < n_classes; ++k) {
    const double* const p = probabilities + k * column_stride;
    const auto label = static_cast<double>(k);
    for (std::size_t row = 0; row < block_rows; ++row) {
      const bool is_own = labels[row] == label;
      own[row] = is_own ? p[row] : own[row];
      others[row] += is_own ? 0.0 : p[row];
    }
  }
  for (std::size_t row = 0; row < block_rows; ++row) {
    // loss = log(1 + odds of the other classes) if the label is likely, else log_sum - score.
    const double odds = own[row] > 0.5 ? others[row] / own[row] : 0.0;
    const double one_plus = 1 + odds;
    const double log_sum = common::log_normal(one_plus) + (odds - (one_plus - 1)) / one_plus;
    losses[row] = own[row] > 0.5 ? log_sum : losses[row];
  }
}

}  // namespace spinney::linear
