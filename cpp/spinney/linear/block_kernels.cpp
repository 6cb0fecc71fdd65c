#include "spinney/linear/block_kernels.h"

#include "spinney/common/dispatch.h"
#include "spinney/common/exp.h"
#include "spinney/common/log.h"
#include "spinney/common/simd.h"

namespace spinney::linear {

using common::dispatch;
using common::Doubles8;
using common::load;
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
        store(columns + j * column_stride + row, load<Doubles8>(eight) - centre[j]);
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

void read_block(const DenseRows<double>& rows, std::size_t first, std::size_t n,
                const double* centre, double* columns) {
  dispatch<read_rows<double>>(rows, first, n, centre, columns);
}

void read_block(const DenseRows<float>& rows, std::size_t first, std::size_t n,
                const double* centre, double* columns) {
  dispatch<read_rows<float>>(rows, first, n, centre, columns);
}

namespace {

SPINNEY_INLINE void scale_rows_kernel(const double* columns, const double* by,
                                      std::size_t n_columns, double* out) {
  for (std::size_t j = 0; j < n_columns; ++j) {
    for (std::size_t row = 0; row < block_rows; row += n_lanes) {
      store(out + j * column_stride + row,
            load<Doubles8>(columns + j * column_stride + row) * load<Doubles8>(by + row));
    }
  }
}

}  // namespace

void scale_rows(const double* columns, const double* by, std::size_t n_columns, double* out) {
  dispatch<scale_rows_kernel>(columns, by, n_columns, out);
}

namespace {

SPINNEY_INLINE void combine_columns_kernel(const double* columns, const double* weights,
                                           std::size_t n_columns, double* out) {
  constexpr std::size_t rows_at_once = 4 * n_lanes;
  for (std::size_t row = 0; row < block_rows; row += rows_at_once) {
    Doubles8 a = {}, b = {}, c = {}, d = {};
    const double* x = columns + row;
    for (std::size_t j = 0; j < n_columns; ++j) {
      a += load<Doubles8>(x) * weights[j];
      b += load<Doubles8>(x + n_lanes) * weights[j];
      c += load<Doubles8>(x + 2 * n_lanes) * weights[j];
      d += load<Doubles8>(x + 3 * n_lanes) * weights[j];
      x += column_stride;
    }
    store(out + row, a);
    store(out + row + n_lanes, b);
    store(out + row + 2 * n_lanes, c);
    store(out + row + 3 * n_lanes, d);
  }
}

}  // namespace

void combine_columns(const double* columns, const double* weights, std::size_t n_columns,
                     double* out) {
  dispatch<combine_columns_kernel>(columns, weights, n_columns, out);
}

namespace {

SPINNEY_INLINE void combine_columns_by_four_kernel(const double* columns, const double* weights,
                                                   std::size_t stride, std::size_t n_columns,
                                                   double* out) {
  constexpr std::size_t rows_at_once = 4;
  const double *const w0 = weights, *const w1 = w0 + stride, *const w2 = w1 + stride,
                      *const w3 = w2 + stride;
  for (std::size_t row = 0; row < block_rows; row += rows_at_once * n_lanes) {
    Doubles8 sums[4][rows_at_once] = {};
    const double* x = columns + row;
    for (std::size_t j = 0; j < n_columns; ++j) {
      for (std::size_t lane = 0; lane < rows_at_once; ++lane) {
        const Doubles8 values = load<Doubles8>(x + lane * n_lanes);
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

}  // namespace

void combine_columns_by_four(const double* columns, const double* weights, std::size_t stride,
                             std::size_t n_columns, double* out) {
  dispatch<combine_columns_by_four_kernel>(columns, weights, stride, n_columns, out);
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

void add_eight_rows(const double* rows, std::ptrdiff_t row_stride, const double* factors,
                    std::size_t n_columns, double* out) {
  dispatch<add_eight<double>>(rows, row_stride, factors, n_columns, out);
}

void add_eight_rows(const float* rows, std::ptrdiff_t row_stride, const double* factors,
                    std::size_t n_columns, double* out) {
  dispatch<add_eight<float>>(rows, row_stride, factors, n_columns, out);
}

namespace {

SPINNEY_INLINE void add_sums_kernel(const double* columns, const double* factors,
                                    std::size_t n_columns, double* lanes) {
  for (std::size_t j = 0; j < n_columns; ++j) {
    const double* const x = columns + j * column_stride;
    Doubles8 even = load<Doubles8>(lanes + j * n_lanes), odd = {};
    for (std::size_t row = 0; row < block_rows; row += 2 * n_lanes) {
      even += load<Doubles8>(x + row) * load<Doubles8>(factors + row);
      odd += load<Doubles8>(x + row + n_lanes) * load<Doubles8>(factors + row + n_lanes);
    }
    store(lanes + j * n_lanes, even + odd);
  }
}

}  // namespace

void add_sums(const double* columns, const double* factors, std::size_t n_columns, double* lanes) {
  dispatch<add_sums_kernel>(columns, factors, n_columns, lanes);
}

namespace {

SPINNEY_INLINE void measure_logistic_kernel(const double* z, const double* y, const double* weights,
                                            double* loss_lanes, double* slopes,
                                            double* curvatures) {
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
  Doubles8 sum = load<Doubles8>(loss_lanes);
  for (std::size_t row = 0; row < block_rows; row += n_lanes) sum += load<Doubles8>(losses + row);
  store(loss_lanes, sum);
  if (curvatures == nullptr) return;
  for (std::size_t row = 0; row < block_rows; ++row) curvatures[row] = curves[row];
}

}  // namespace

void measure_logistic(const double* z, const double* y, const double* weights, double* loss_lanes,
                      double* slopes, double* curvatures) {
  dispatch<measure_logistic_kernel>(z, y, weights, loss_lanes, slopes, curvatures);
}

namespace {

SPINNEY_INLINE void softmax_kernel(double* scores, std::size_t n_classes, double* log_sums) {
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

}  // namespace

void softmax(double* scores, std::size_t n_classes, double* log_sums) {
  dispatch<softmax_kernel>(scores, n_classes, log_sums);
}

namespace {

SPINNEY_INLINE void measure_own_class_kernel(const double* probabilities, std::size_t n_classes,
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

}  // namespace

void measure_own_class(const double* probabilities, std::size_t n_classes, const double* labels,
                       double* losses, double* others) {
  dispatch<measure_own_class_kernel>(probabilities, n_classes, labels, losses, others);
}

}  // namespace spinney::linear
