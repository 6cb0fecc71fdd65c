#include "spinney/linear/row_products.h"

#include <algorithm>
#include <cstring>

#include "spinney/common/dispatch.h"
#include "spinney/common/parallel.h"
#include "spinney/common/simd.h"

namespace spinney::linear {

using common::dispatch;
using common::Doubles8;
using common::load;
using common::parallel_for;
using common::worthwhile_threads;

namespace {

// Every kernel has the same order of additions: columns 0, 8, 16, … go to lane 0, columns 1, 9, …
// to lane 1 and so on. Then `sum_lanes` adds the lanes, and the sum of the remaining columns is
// added.

constexpr std::size_t rows_per_chunk = 256;

constexpr std::size_t n_lanes = common::lane_count<Doubles8>;

SPINNEY_INLINE Doubles8 load_values(const double* from) { return load<Doubles8>(from); }
SPINNEY_INLINE Doubles8 load_values(const float* from) {
  return common::convert<Doubles8>(load<common::Floats8>(from));
}

// A tile of several contiguous rows and several outputs, which share the loaded values.
template <std::size_t n_rows, std::size_t n_outputs, bool centred, class T>
SPINNEY_INLINE void multiply_tile(const DenseRows<T>& rows, std::size_t row, const Coefficients& by,
                                  std::size_t output, double* out) {
  const std::size_t d = rows.n_features;
  const T* x[n_rows];
  const double* w[n_outputs];
  for (std::size_t i = 0; i < n_rows; ++i) {
    x[i] = rows.values + static_cast<std::ptrdiff_t>(row + i) * rows.row_stride;
  }
  for (std::size_t k = 0; k < n_outputs; ++k) w[k] = by.values + (output + k) * d;
  Doubles8 lanes[n_rows][n_outputs] = {};
  double rest[n_rows][n_outputs] = {};
  std::size_t j = 0;
  for (; j + n_lanes <= d; j += n_lanes) {
    for (std::size_t i = 0; i < n_rows; ++i) {
      Doubles8 values = load_values(x[i] + j);
      if (centred) values -= load<Doubles8>(by.centre + j);
      for (std::size_t k = 0; k < n_outputs; ++k) lanes[i][k] += values * load<Doubles8>(w[k] + j);
    }
  }
  for (; j < d; ++j) {
    for (std::size_t i = 0; i < n_rows; ++i) {
      double value = static_cast<double>(x[i][j]);
      if (centred) value -= by.centre[j];
      for (std::size_t k = 0; k < n_outputs; ++k) rest[i][k] += value * w[k][j];
    }
  }
  for (std::size_t i = 0; i < n_rows; ++i) {
    for (std::size_t k = 0; k < n_outputs; ++k) {
      out[(row + i) * by.n_outputs + output + k] = common::sum_lanes(lanes[i][k]) + rest[i][k];
    }
  }
}

template <std::size_t n_rows, bool centred, class T>
SPINNEY_INLINE void multiply_all_outputs(const DenseRows<T>& rows, std::size_t row,
                                         const Coefficients& by, double* out) {
  std::size_t k = 0;
  for (; k + 4 <= by.n_outputs; k += 4) multiply_tile<n_rows, 4, centred>(rows, row, by, k, out);
  for (; k < by.n_outputs; ++k) multiply_tile<n_rows, 1, centred>(rows, row, by, k, out);
}

// Eight rows with any strides: a vector has the same column of eight rows.
template <bool centred, class T>
SPINNEY_INLINE void multiply_eight(const DenseRows<T>& rows, std::size_t row,
                                   const Coefficients& by, std::size_t output, double* out) {
  const std::size_t d = rows.n_features;
  const double* const w = by.values + output * d;
  const T* x = rows.values + static_cast<std::ptrdiff_t>(row) * rows.row_stride;
  Doubles8 sums[n_lanes] = {};
  Doubles8 rest = {};
  const std::size_t whole = d - d % n_lanes;
  const auto add = [&](std::size_t j, Doubles8& sum) SPINNEY_INLINE_LAMBDA {
    T eight[n_lanes];
    if (rows.row_stride == 1) {
      std::memcpy(eight, x, sizeof(eight));
    } else {
      for (std::size_t i = 0; i < n_lanes; ++i) {
        eight[i] = x[static_cast<std::ptrdiff_t>(i) * rows.row_stride];
      }
    }
    x += rows.column_stride;
    Doubles8 values = load_values(eight);
    if (centred) values -= by.centre[j];
    sum += values * w[j];
  };
  std::size_t j = 0;
  for (; j < whole; j += n_lanes) {
    for (std::size_t lane = 0; lane < n_lanes; ++lane) add(j + lane, sums[lane]);
  }
  for (; j < d; ++j) add(j, rest);
  const Doubles8 total =
      (((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]))) +
      rest;
  for (std::size_t i = 0; i < n_lanes; ++i) out[(row + i) * by.n_outputs + output] = total[i];
}

// One row with any strides.
template <bool centred, class T>
SPINNEY_INLINE void multiply_one(const DenseRows<T>& rows, std::size_t row, const Coefficients& by,
                                 std::size_t output, double* out) {
  const std::size_t d = rows.n_features;
  const double* const w = by.values + output * d;
  const T* const x = rows.values + static_cast<std::ptrdiff_t>(row) * rows.row_stride;
  double sums[n_lanes] = {};
  double rest = 0;
  const std::size_t whole = d - d % n_lanes;
  for (std::size_t j = 0; j < d; ++j) {
    double value = static_cast<double>(x[static_cast<std::ptrdiff_t>(j) * rows.column_stride]);
    if (centred) value -= by.centre[j];
    (j < whole ? sums[j % n_lanes] : rest) += value * w[j];
  }
  out[row * by.n_outputs + output] = common::sum_eight(sums) + rest;
}

template <bool centred, class T>
SPINNEY_INLINE void multiply_chunk(const DenseRows<T>& rows, std::size_t begin, std::size_t end,
                                   const Coefficients& by, double* out) {
  std::size_t row = begin;
  if (rows.column_stride == 1) {
    if (by.n_outputs == 1) {
      for (; row + 4 <= end; row += 4) multiply_tile<4, 1, centred>(rows, row, by, 0, out);
    }
    for (; row < end; ++row) multiply_all_outputs<1, centred>(rows, row, by, out);
    return;
  }
  for (; row + n_lanes <= end; row += n_lanes) {
    for (std::size_t k = 0; k < by.n_outputs; ++k) {
      multiply_eight<centred>(rows, row, by, k, out);
    }
  }
  for (; row < end; ++row) {
    for (std::size_t k = 0; k < by.n_outputs; ++k) multiply_one<centred>(rows, row, by, k, out);
  }
}

template <class T>
SPINNEY_INLINE void multiply_kernel(const DenseRows<T>& rows, std::size_t begin, std::size_t end,
                                    const Coefficients& by, double* out) {
  if (by.centre == nullptr) return multiply_chunk<false>(rows, begin, end, by, out);
  multiply_chunk<true>(rows, begin, end, by, out);
}

template <class T>
void multiply(const DenseRows<T>& rows, std::size_t begin, std::size_t end, const Coefficients& by,
              double* out) {
  dispatch<multiply_kernel<T>>(rows, begin, end, by, out);
}

template <class Index>
void multiply(const SparseRows<Index>& rows, std::size_t begin, std::size_t end,
              const Coefficients& by, double* out) {
  const std::size_t d = rows.n_features;
  const std::size_t whole = d - d % n_lanes;
  for (std::size_t row = begin; row < end; ++row) {
    const auto first = static_cast<std::size_t>(rows.starts[row]);
    const auto last = static_cast<std::size_t>(rows.starts[row + 1]);
    for (std::size_t k = 0; k < by.n_outputs; ++k) {
      const double* const w = by.values + k * d;
      double sums[n_lanes] = {};
      double rest = 0;
      for (std::size_t at = first; at < last; ++at) {
        const auto j = static_cast<std::size_t>(rows.columns[at]);
        (j < whole ? sums[j % n_lanes] : rest) += rows.values[at] * w[j];
      }
      out[row * by.n_outputs + k] = common::sum_eight(sums) + rest;
    }
  }
}

template <class Rows>
void multiply_chunks(const Rows& rows, double n_products, const Coefficients& by, int n_threads,
                     double* out) {
  const std::size_t n_chunks = (rows.n_rows + rows_per_chunk - 1) / rows_per_chunk;
  parallel_for(n_chunks, worthwhile_threads(0.3 * n_products, n_threads),
               [&](std::size_t chunk, int) {
                 const std::size_t begin = chunk * rows_per_chunk;
                 multiply(rows, begin, std::min(rows.n_rows, begin + rows_per_chunk), by, out);
               });
}

template <class T>
void multiply_dense(const DenseRows<T>& rows, const Coefficients& by, int n_threads, double* out) {
  const double n_products = static_cast<double>(rows.n_rows) *
                            static_cast<double>(rows.n_features) *
                            static_cast<double>(by.n_outputs);
  multiply_chunks(rows, n_products, by, n_threads, out);
}

template <class Index>
void multiply_sparse(const SparseRows<Index>& rows, const Coefficients& by, int n_threads,
                     double* out) {
  const double n_products =
      static_cast<double>(rows.starts[rows.n_rows]) * static_cast<double>(by.n_outputs);
  multiply_chunks(rows, n_products, by, n_threads, out);
}

}  // namespace

void multiply_rows(const DenseRows<double>& rows, const Coefficients& by, int n_threads,
                   double* out) {
  multiply_dense(rows, by, n_threads, out);
}

void multiply_rows(const DenseRows<float>& rows, const Coefficients& by, int n_threads,
                   double* out) {
  multiply_dense(rows, by, n_threads, out);
}

void multiply_rows(const SparseRows<std::int32_t>& rows, const Coefficients& by, int n_threads,
                   double* out) {
  multiply_sparse(rows, by, n_threads, out);
}

void multiply_rows(const SparseRows<std::int64_t>& rows, const Coefficients& by, int n_threads,
                   double* out) {
  multiply_sparse(rows, by, n_threads, out);
}

}  // namespace spinney::linear
