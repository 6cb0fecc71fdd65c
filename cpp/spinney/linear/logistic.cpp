#include "spinney/linear/logistic.h"

#include <algorithm>
#include <cmath>

#include "spinney/common/exp.h"
#include "spinney/common/large_array.h"
#include "spinney/common/log.h"
#include "spinney/common/parallel.h"
#include "spinney/common/simd.h"
#include "spinney/linear/block_kernels.h"
#include "spinney/linear/moments.h"

namespace spinney::linear {

using common::count_tile_rows;
using common::parallel_for;
using common::sum_eight;
using common::tiles_size;
using common::worthwhile_threads;

namespace {

constexpr std::size_t max_chunks = 64;
constexpr std::size_t max_values = std::size_t{1} << 23;  // of the sums of all chunks

// Computes sums of chunks in parallel and adds them in order.
template <class Body>
common::LargeArray<double> sum_chunks(std::size_t n_rows, std::size_t size, double work,
                                      int n_threads, const Body& body) {
  const std::size_t n_fitting = std::max<std::size_t>(1, max_values / size);
  const Chunks chunks(n_rows, block_rows, std::min(max_chunks, n_fitting));
  common::LargeArray<double> sums(std::max<std::size_t>(1, chunks.n_chunks) * size);
  std::fill(sums.begin(), sums.end(), 0.0);
  parallel_for(chunks.n_chunks, worthwhile_threads(work, n_threads, true),
               [&](std::size_t chunk, int) {
                 body(chunks.begin(chunk), chunks.end(chunk), sums.data() + chunk * size);
               });
  for (std::size_t chunk = 1; chunk < chunks.n_chunks; ++chunk) {
    const double* const from = sums.data() + chunk * size;
    for (std::size_t i = 0; i < size; ++i) sums[i] += from[i];
  }
  return sums;
}

// A block of rows with a last column of ones.
class Block {
 public:
  explicit Block(std::size_t n_features)
      : n_columns_(n_features + 1), columns_(round_to_tiles(n_columns_) * column_stride) {
    std::fill(columns_.begin(), columns_.end(), 0.0);
  }

  template <class T>
  void read(const DenseRows<T>& rows, const double* centre, const double* weights,
            std::size_t first, std::size_t end) {
    n_ = std::min(block_rows, end - first);
    read_block(rows, first, n_, centre, columns_.data());
    double* const ones = columns_.data() + (n_columns_ - 1) * column_stride;
    for (std::size_t row = 0; row < block_rows; ++row) {
      ones[row] = row < n_ ? 1 : 0;
      weights_[row] = row >= n_ ? 0 : weights == nullptr ? 1 : weights[first + row];
    }
  }

  std::size_t n() const { return n_; }
  std::size_t n_columns() const { return n_columns_; }
  const double* columns() const { return columns_.data(); }
  const double* weights() const { return weights_; }

 private:
  std::size_t n_columns_;
  std::size_t n_ = 0;
  common::LargeArray<double> columns_;
  double weights_[block_rows] = {};
};

double dense_work(std::size_t n_rows, std::size_t n_columns, std::size_t n_passes,
                  bool with_hessian) {
  const auto d = static_cast<double>(n_columns);
  const auto passes = static_cast<double>(n_passes);
  return static_cast<double>(n_rows) *
         (5 + 0.5 * d + 0.3 * d * passes + (with_hessian ? 0.1 * d * d * passes * passes : 0));
}

// With at least this many columns, rows are read one by one instead of in blocks.
constexpr std::size_t wide_columns = 512;

template <class T>
Derivatives measure_wide(const DenseRows<T>& rows, const double* centre,
                         const BinaryProblem& problem, int n_threads, double* curvatures) {
  const std::size_t d = rows.n_features;
  std::vector<std::size_t> used;  // columns with nonzero coefficients, which are often few
  double offset = problem.coefficients[d];
  for (std::size_t j = 0; j < d; ++j) {
    if (problem.coefficients[j] == 0) continue;
    used.push_back(j);
    offset -= centre[j] * problem.coefficients[j];
  }
  const double work = static_cast<double>(rows.n_rows) * static_cast<double>(d + used.size());
  const auto sums = sum_chunks(
      rows.n_rows, d + 2, work, n_threads, [&](std::size_t begin, std::size_t end, double* out) {
        double lanes[n_lanes] = {};
        double z[block_rows], y[block_rows], weights[block_rows], slopes[block_rows],
            curves[block_rows];
        for (std::size_t first = begin; first < end; first += block_rows) {
          const std::size_t n = std::min(block_rows, end - first);
          const T* const from = rows.values + static_cast<std::ptrdiff_t>(first) * rows.row_stride;
          for (std::size_t row = 0; row < block_rows; ++row) {
            z[row] = y[row] = weights[row] = 0;
            if (row >= n) continue;
            const T* const x = from + static_cast<std::ptrdiff_t>(row) * rows.row_stride;
            double sum = offset;
            for (const std::size_t j : used) {
              sum += static_cast<double>(x[j]) * problem.coefficients[j];
            }
            z[row] = sum;
            y[row] = problem.targets[first + row];
            weights[row] = problem.weights == nullptr ? 1 : problem.weights[first + row];
          }
          measure_logistic(z, y, weights, lanes, slopes, curves);
          if (curvatures != nullptr) std::copy_n(curves, n, curvatures + first);
          std::size_t row = 0;
          for (; row + 8 <= n; row += 8) {
            add_eight_rows(from + static_cast<std::ptrdiff_t>(row) * rows.row_stride,
                           rows.row_stride, slopes + row, d, out + 1);
          }
          for (; row < n; ++row) {
            const T* const x = from + static_cast<std::ptrdiff_t>(row) * rows.row_stride;
            for (std::size_t j = 0; j < d; ++j) {
              out[1 + j] += slopes[row] * static_cast<double>(x[j]);
            }
          }
          for (row = 0; row < n; ++row) out[1 + d] += slopes[row];
        }
        out[0] = sum_eight(lanes);
      });
  Derivatives derivatives;
  derivatives.loss = sums[0];
  derivatives.gradient.assign(sums.data() + 1, sums.data() + 2 + d);
  for (std::size_t j = 0; j < d; ++j) {
    derivatives.gradient[j] -= centre[j] * derivatives.gradient[d];
  }
  return derivatives;
}

}  // namespace

template <class T>
Derivatives measure_binary(const DenseRows<T>& rows, const double* centre,
                           const BinaryProblem& problem, bool with_hessian, int n_threads) {
  if (rows.n_features >= wide_columns && rows.column_stride == 1) {
    if (!with_hessian) return measure_wide(rows, centre, problem, n_threads, nullptr);
    // The matrix of products is large, so threads divide the products instead of the rows.
    std::vector<double> curvatures(rows.n_rows);
    Derivatives derivatives = measure_wide(rows, centre, problem, n_threads, curvatures.data());
    derivatives.hessian = sum_moments(rows, {nullptr, 0, curvatures.data()}, centre, n_threads);
    return derivatives;
  }
  const std::size_t n_columns = rows.n_features + 1;
  const std::size_t n_tile_rows = count_tile_rows(n_columns);
  const std::size_t first_product = (1 + n_columns) * n_lanes;
  const std::size_t size = first_product + (with_hessian ? tiles_size(n_columns) : 0);
  const double work = dense_work(rows.n_rows, n_columns, 1, with_hessian);
  const auto sums = sum_chunks(
      rows.n_rows, size, work, n_threads, [&](std::size_t begin, std::size_t end, double* out) {
        Block block(rows.n_features);
        common::LargeArray<double> curved(with_hessian ? round_to_tiles(n_columns) * column_stride
                                                       : 0);
        std::fill(curved.begin(), curved.end(), 0.0);
        double z[block_rows], y[block_rows], slopes[block_rows], curvatures[block_rows];
        for (std::size_t first = begin; first < end; first += block_rows) {
          block.read(rows, centre, problem.weights, first, end);
          for (std::size_t row = 0; row < block_rows; ++row) {
            y[row] = row < block.n() ? problem.targets[first + row] : 0;
          }
          combine_columns(block.columns(), problem.coefficients, n_columns, z);
          measure_logistic(z, y, block.weights(), out, slopes, with_hessian ? curvatures : nullptr);
          add_sums(block.columns(), slopes, n_columns, out + n_lanes);
          if (!with_hessian) continue;
          scale_rows(block.columns(), curvatures, n_columns, curved.data());
          common::add_tiled_products(product_block(curved.data(), block.columns(), n_columns), 0,
                                     n_tile_rows, out + first_product);
        }
      });
  Derivatives derivatives;
  derivatives.loss = sum_eight(sums.data());
  for (std::size_t j = 0; j < n_columns; ++j) {
    derivatives.gradient.push_back(sum_eight(sums.data() + (1 + j) * n_lanes));
  }
  if (with_hessian) {
    derivatives.hessian.resize(n_columns * n_columns);
    common::unpack_tiles(sums.data() + first_product, n_columns, derivatives.hessian.data());
  }
  return derivatives;
}

template <class Index>
Derivatives measure_binary(const SparseRows<Index>& rows, const BinaryProblem& problem,
                           bool with_hessian, int n_threads) {
  const std::size_t d = rows.n_features, n_columns = d + 1;
  const std::size_t size = 1 + n_columns + (with_hessian ? n_columns * n_columns : 0);
  const auto n_stored = static_cast<double>(rows.starts[rows.n_rows]);
  const auto n_rows = static_cast<double>(std::max<std::size_t>(1, rows.n_rows));
  const double work = 20 * n_rows + n_stored * (2 + (with_hessian ? n_stored / n_rows : 0));
  const auto sums = sum_chunks(
      rows.n_rows, size, work, n_threads, [&](std::size_t begin, std::size_t end, double* out) {
        double* const gradient = out + 1;
        double* const hessian = gradient + n_columns;
        double z[block_rows], y[block_rows], weights[block_rows], slopes[block_rows],
            curvatures[block_rows];
        double lanes[n_lanes] = {};
        for (std::size_t first = begin; first < end; first += block_rows) {
          const std::size_t n = std::min(block_rows, end - first);
          for (std::size_t row = 0; row < block_rows; ++row) {
            z[row] = y[row] = weights[row] = 0;
            if (row >= n) continue;
            double sum = problem.coefficients[d];
            const auto from = static_cast<std::size_t>(rows.starts[first + row]);
            const auto to = static_cast<std::size_t>(rows.starts[first + row + 1]);
            for (std::size_t i = from; i < to; ++i) {
              sum += rows.values[i] * problem.coefficients[rows.columns[i]];
            }
            z[row] = sum;
            y[row] = problem.targets[first + row];
            weights[row] = problem.weights == nullptr ? 1 : problem.weights[first + row];
          }
          measure_logistic(z, y, weights, lanes, slopes, curvatures);
          for (std::size_t row = 0; row < n; ++row) {
            const auto from = static_cast<std::size_t>(rows.starts[first + row]);
            const auto to = static_cast<std::size_t>(rows.starts[first + row + 1]);
            for (std::size_t i = from; i < to; ++i) {
              gradient[rows.columns[i]] += slopes[row] * rows.values[i];
            }
            gradient[d] += slopes[row];
            if (!with_hessian) continue;
            for (std::size_t i = from; i < to; ++i) {
              const double value = curvatures[row] * rows.values[i];
              double* const matrix_row =
                  hessian + static_cast<std::size_t>(rows.columns[i]) * n_columns;
              for (std::size_t j = i; j < to; ++j)
                matrix_row[rows.columns[j]] += value * rows.values[j];
              matrix_row[d] += value;
            }
            hessian[n_columns * n_columns - 1] += curvatures[row];
          }
        }
        out[0] = sum_eight(lanes);
      });
  Derivatives derivatives;
  derivatives.loss = sums[0];
  derivatives.gradient.assign(sums.data() + 1, sums.data() + 1 + n_columns);
  if (with_hessian) {
    derivatives.hessian.assign(sums.data() + 1 + n_columns, sums.data() + size);
    auto& h = derivatives.hessian;  // columns of a row ascend, so only the upper half is filled
    for (std::size_t i = 0; i < n_columns; ++i) {
      for (std::size_t j = i + 1; j < n_columns; ++j) h[j * n_columns + i] = h[i * n_columns + j];
    }
  }
  return derivatives;
}

template <class T>
Derivatives measure_multinomial(const DenseRows<T>& rows, const double* centre,
                                const MultinomialProblem& problem, bool with_hessian,
                                int n_threads) {
  const std::size_t n_columns = rows.n_features + 1, n_classes = problem.n_classes;
  const std::size_t n_tile_rows = count_tile_rows(n_columns);
  const std::size_t n_products = tiles_size(n_columns);
  const std::size_t n_pairs = with_hessian ? n_classes * (n_classes + 1) / 2 : 0;
  const std::size_t first_product = (1 + n_classes * n_columns) * n_lanes;
  const std::size_t size = first_product + n_pairs * n_products;
  const double work = dense_work(rows.n_rows, n_columns, n_classes, with_hessian);
  const auto sums = sum_chunks(
      rows.n_rows, size, work, n_threads, [&](std::size_t begin, std::size_t end, double* out) {
        Block block(rows.n_features);
        common::LargeArray<double> curved(with_hessian ? round_to_tiles(n_columns) * column_stride
                                                       : 0);
        std::fill(curved.begin(), curved.end(), 0.0);
        std::vector<double> scores(n_classes * column_stride);
        double log_sums[block_rows], losses[block_rows], others[block_rows], factors[block_rows];
        double own[block_rows], labels[block_rows];
        for (std::size_t first = begin; first < end; first += block_rows) {
          block.read(rows, centre, problem.weights, first, end);
          for (std::size_t row = 0; row < block_rows; ++row) {
            labels[row] = row < block.n() ? static_cast<double>(problem.labels[first + row]) : 0;
          }
          for (std::size_t k = 0; k < n_classes; ++k) {
            combine_columns(block.columns(), problem.coefficients + k * n_columns, n_columns,
                            scores.data() + k * column_stride);
          }
          for (std::size_t row = 0; row < block_rows; ++row) {
            own[row] = scores[static_cast<std::size_t>(labels[row]) * column_stride + row];
          }
          softmax(scores.data(), n_classes, log_sums);
          for (std::size_t row = 0; row < block_rows; ++row) losses[row] = log_sums[row] - own[row];
          measure_own_class(scores.data(), n_classes, labels, losses, others);
          for (std::size_t row = 0; row < block_rows; ++row) {
            out[row % n_lanes] += block.weights()[row] * losses[row];
          }
          for (std::size_t k = 0; k < n_classes; ++k) {
            const double* const p = scores.data() + k * column_stride;
            const auto label = static_cast<double>(k);
            for (std::size_t row = 0; row < block_rows; ++row) {
              factors[row] = block.weights()[row] * (labels[row] == label ? -others[row] : p[row]);
            }
            add_sums(block.columns(), factors, n_columns, out + (1 + k * n_columns) * n_lanes);
          }
          double* products = out + first_product;
          for (std::size_t k = 0; k < n_classes && with_hessian; ++k) {
            for (std::size_t l = k; l < n_classes; ++l) {
              const double* const p = scores.data() + k * column_stride;
              const double* const q = scores.data() + l * column_stride;
              const auto label = static_cast<double>(k);
              for (std::size_t row = 0; row < block_rows; ++row) {
                const double rest = labels[row] == label ? others[row] : 1 - p[row];
                factors[row] = block.weights()[row] * p[row] * (k == l ? rest : -q[row]);
              }
              scale_rows(block.columns(), factors, n_columns, curved.data());
              common::add_tiled_products(product_block(curved.data(), block.columns(), n_columns),
                                         0, n_tile_rows, products);
              products += n_products;
            }
          }
        }
      });
  Derivatives derivatives;
  derivatives.loss = sum_eight(sums.data());
  for (std::size_t i = 0; i < n_classes * n_columns; ++i) {
    derivatives.gradient.push_back(sum_eight(sums.data() + (1 + i) * n_lanes));
  }
  if (with_hessian) {
    const std::size_t width = n_classes * n_columns;
    derivatives.hessian.resize(width * width);
    std::vector<double> part(n_columns * n_columns);
    const double* products = sums.data() + first_product;
    for (std::size_t k = 0; k < n_classes; ++k) {
      for (std::size_t l = k; l < n_classes; ++l) {
        common::unpack_tiles(products, n_columns, part.data());
        products += n_products;
        for (std::size_t i = 0; i < n_columns; ++i) {
          for (std::size_t j = 0; j < n_columns; ++j) {
            const double value = part[i * n_columns + j];
            derivatives.hessian[(k * n_columns + i) * width + l * n_columns + j] = value;
            derivatives.hessian[(l * n_columns + i) * width + k * n_columns + j] = value;
          }
        }
      }
    }
  }
  return derivatives;
}

template <class Index>
Derivatives measure_multinomial(const SparseRows<Index>& rows, const MultinomialProblem& problem,
                                int n_threads) {
  const std::size_t d = rows.n_features, n_columns = d + 1, n_classes = problem.n_classes;
  const std::size_t size = 1 + n_classes * n_columns;
  const auto n_stored = static_cast<double>(rows.starts[rows.n_rows]);
  const double work =
      static_cast<double>(n_classes) * (3 * n_stored + 20 * static_cast<double>(rows.n_rows));
  const auto sums = sum_chunks(
      rows.n_rows, size, work, n_threads, [&](std::size_t begin, std::size_t end, double* out) {
        std::vector<double> scores(n_classes * column_stride);
        double log_sums[block_rows], losses[block_rows], others[block_rows], labels[block_rows];
        for (std::size_t first = begin; first < end; first += block_rows) {
          const std::size_t n = std::min(block_rows, end - first);
          for (std::size_t k = 0; k < n_classes; ++k) {
            const double* const w = problem.coefficients + k * n_columns;
            for (std::size_t row = 0; row < n; ++row) {
              double sum = w[d];
              const auto from = static_cast<std::size_t>(rows.starts[first + row]);
              const auto to = static_cast<std::size_t>(rows.starts[first + row + 1]);
              for (std::size_t i = from; i < to; ++i) sum += rows.values[i] * w[rows.columns[i]];
              scores[k * column_stride + row] = sum;
            }
          }
          for (std::size_t row = 0; row < block_rows; ++row) {
            labels[row] = row < n ? static_cast<double>(problem.labels[first + row]) : 0;
            losses[row] = -scores[static_cast<std::size_t>(labels[row]) * column_stride + row];
          }
          softmax(scores.data(), n_classes, log_sums);
          for (std::size_t row = 0; row < block_rows; ++row) losses[row] += log_sums[row];
          measure_own_class(scores.data(), n_classes, labels, losses, others);
          for (std::size_t row = 0; row < n; ++row) {
            const double weight = problem.weights == nullptr ? 1 : problem.weights[first + row];
            out[0] += weight * losses[row];
            const auto label = static_cast<std::size_t>(problem.labels[first + row]);
            const auto from = static_cast<std::size_t>(rows.starts[first + row]);
            const auto to = static_cast<std::size_t>(rows.starts[first + row + 1]);
            for (std::size_t k = 0; k < n_classes; ++k) {
              const double slope =
                  weight * (label == k ? -others[row] : scores[k * column_stride + row]);
              double* const gradient = out + 1 + k * n_columns;
              for (std::size_t i = from; i < to; ++i) {
                gradient[rows.columns[i]] += slope * rows.values[i];
              }
              gradient[d] += slope;
            }
          }
        }
      });
  Derivatives derivatives;
  derivatives.loss = sums[0];
  derivatives.gradient.assign(sums.data() + 1, sums.data() + size);
  return derivatives;
}

template Derivatives measure_binary(const DenseRows<double>&, const double*, const BinaryProblem&,
                                    bool, int);
template Derivatives measure_binary(const DenseRows<float>&, const double*, const BinaryProblem&,
                                    bool, int);
template Derivatives measure_binary(const SparseRows<std::int32_t>&, const BinaryProblem&, bool,
                                    int);
template Derivatives measure_binary(const SparseRows<std::int64_t>&, const BinaryProblem&, bool,
                                    int);
template Derivatives measure_multinomial(const DenseRows<double>&, const double*,
                                         const MultinomialProblem&, bool, int);
template Derivatives measure_multinomial(const DenseRows<float>&, const double*,
                                         const MultinomialProblem&, bool, int);
template Derivatives measure_multinomial(const SparseRows<std::int32_t>&, const MultinomialProblem&,
                                         int);
template Derivatives measure_multinomial(const SparseRows<std::int64_t>&, const MultinomialProblem&,
                                         int);

}  // namespace spinney::linear
