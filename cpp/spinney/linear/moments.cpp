#include "spinney/linear/moments.h"

#include <algorithm>

#include "spinney/common/large_array.h"
#include "spinney/common/parallel.h"
#include "spinney/linear/block_kernels.h"

namespace spinney::linear {

using common::parallel_for;
using common::worthwhile_threads;

namespace {

constexpr std::size_t max_chunks = 64;
constexpr std::size_t max_values = std::size_t{1} << 22;  // of the sums of all chunks

// Reads the columns x, y and ones of a block.
template <class T>
void read_columns(const DenseRows<T>& rows, const WeightedTargets& targets, const double* centre,
                  std::size_t first, std::size_t n, double* columns) {
  const std::size_t d = rows.n_features, m = targets.n_targets;
  read_block(rows, first, n, centre, columns);
  const DenseRows<double> y{targets.values, static_cast<std::ptrdiff_t>(m), 1, rows.n_rows, m};
  read_block(y, first, n, centre + d, columns + d * column_stride);
  double* const ones = columns + (d + m) * column_stride;
  for (std::size_t row = 0; row < block_rows; ++row) ones[row] = row < n ? 1 : 0;
}

void read_weights(const double* weights, std::size_t first, std::size_t n, double* out) {
  for (std::size_t row = 0; row < block_rows; ++row) out[row] = row < n ? weights[first + row] : 0;
}

// A block of rows: its columns, and the columns times the weights.
struct Columns {
  common::LargeArray<double> plain;
  common::LargeArray<double> weighted;

  Columns(std::size_t n_columns, bool has_weights) {
    const std::size_t size = round_to_tiles(n_columns) * column_stride;
    plain.resize(size);
    std::fill(plain.begin(), plain.end(), 0.0);
    if (!has_weights) return;
    weighted.resize(size);
    std::fill(weighted.begin(), weighted.end(), 0.0);
  }
  const double* left() const { return weighted.size() > 0 ? weighted.data() : plain.data(); }

  template <class T>
  void read(const DenseRows<T>& rows, const WeightedTargets& targets, const double* centre,
            std::size_t first, std::size_t n) {
    read_columns(rows, targets, centre, first, n, plain.data());
    if (targets.weights == nullptr) return;
    double weights[block_rows];
    read_weights(targets.weights, first, n, weights);
    scale_rows(plain.data(), weights, rows.n_features + targets.n_targets + 1, weighted.data());
  }
};

}  // namespace

template <class T>
std::vector<double> sum_moments(const DenseRows<T>& rows, const WeightedTargets& targets,
                                const double* centre, int n_threads) {
  const std::size_t n_columns = rows.n_features + targets.n_targets + 1;
  const std::size_t n_tile_rows = common::count_tile_rows(n_columns);
  const std::size_t size = common::tiles_size(n_columns);
  const std::size_t n_fitting = std::max<std::size_t>(1, max_values / size);
  const Chunks chunks(rows.n_rows, block_rows, std::min(max_chunks, n_fitting));
  const double work = 0.1 * static_cast<double>(rows.n_rows) * static_cast<double>(n_columns) *
                      static_cast<double>(n_columns);
  const int threads = worthwhile_threads(work, n_threads);
  // If the matrix is large, threads divide the tiles of a block instead of the rows.
  const bool by_tiles = n_fitting < 8;
  common::LargeArray<double> lanes(chunks.n_chunks * size);
  std::fill(lanes.begin(), lanes.end(), 0.0);
  const auto add_chunk = [&](std::size_t chunk) {
    Columns columns(n_columns, targets.weights != nullptr);
    double* const sums = lanes.data() + chunk * size;
    for (std::size_t row = chunks.begin(chunk); row < chunks.end(chunk); row += block_rows) {
      const std::size_t n = std::min(block_rows, chunks.end(chunk) - row);
      columns.read(rows, targets, centre, row, n);
      const auto products = product_block(columns.left(), columns.plain.data(), n_columns);
      if (!by_tiles) {
        common::add_tiled_products(products, 0, n_tile_rows, sums);
        continue;
      }
      parallel_for(n_tile_rows, threads, [&](std::size_t tile_row, int) {
        common::add_tiled_products(products, tile_row, tile_row + 1, sums);
      });
    }
  };
  if (by_tiles) {
    for (std::size_t chunk = 0; chunk < chunks.n_chunks; ++chunk) add_chunk(chunk);
  } else {
    parallel_for(chunks.n_chunks, threads, [&](std::size_t chunk, int) { add_chunk(chunk); });
  }
  for (std::size_t chunk = 1; chunk < chunks.n_chunks; ++chunk) {
    const double* const from = lanes.data() + chunk * size;
    for (std::size_t i = 0; i < size; ++i) lanes[i] += from[i];
  }
  std::vector<double> out(n_columns * n_columns);
  if (chunks.n_chunks > 0) common::unpack_tiles(lanes.data(), n_columns, out.data());
  return out;
}

template <class Index>
std::vector<double> sum_moments(const SparseRows<Index>& rows, const WeightedTargets& targets,
                                int n_threads) {
  const std::size_t d = rows.n_features, m = targets.n_targets, n_columns = d + m + 1;
  const std::size_t size = n_columns * n_columns;
  const std::size_t n_fitting = std::max<std::size_t>(1, max_values / size);
  const Chunks chunks(rows.n_rows, block_rows, std::min(max_chunks, n_fitting));
  std::vector<double> sums(std::max<std::size_t>(1, chunks.n_chunks) * size, 0.0);
  const auto n_stored = static_cast<double>(rows.starts[rows.n_rows]);
  const double work =
      n_stored * (n_stored / static_cast<double>(std::max<std::size_t>(1, rows.n_rows)) +
                  static_cast<double>(m));
  parallel_for(chunks.n_chunks, worthwhile_threads(work, n_threads), [&](std::size_t chunk, int) {
    double* const out = sums.data() + chunk * size;
    for (std::size_t row = chunks.begin(chunk); row < chunks.end(chunk); ++row) {
      const double weight = targets.weights == nullptr ? 1 : targets.weights[row];
      const auto begin = static_cast<std::size_t>(rows.starts[row]);
      const auto end = static_cast<std::size_t>(rows.starts[row + 1]);
      const double* const y = targets.values + row * m;
      for (std::size_t i = begin; i < end; ++i) {
        const double value = weight * rows.values[i];
        double* const matrix_row = out + static_cast<std::size_t>(rows.columns[i]) * n_columns;
        for (std::size_t j = i; j < end; ++j) matrix_row[rows.columns[j]] += value * rows.values[j];
        for (std::size_t t = 0; t < m; ++t) matrix_row[d + t] += value * y[t];
        matrix_row[d + m] += value;
      }
      for (std::size_t s = 0; s < m; ++s) {
        double* const matrix_row = out + (d + s) * n_columns + d;
        for (std::size_t t = s; t < m; ++t) matrix_row[t] += weight * y[s] * y[t];
        matrix_row[m] += weight * y[s];
      }
      out[size - 1] += weight;
    }
  });
  for (std::size_t chunk = 1; chunk < chunks.n_chunks; ++chunk) {
    for (std::size_t i = 0; i < size; ++i) sums[i] += sums[chunk * size + i];
  }
  sums.resize(size);
  // Columns of a row ascend, so only the upper half is filled.
  for (std::size_t i = 0; i < n_columns; ++i) {
    for (std::size_t j = i + 1; j < n_columns; ++j)
      sums[j * n_columns + i] = sums[i * n_columns + j];
  }
  return sums;
}

template std::vector<double> sum_moments(const DenseRows<double>&, const WeightedTargets&,
                                         const double*, int);
template std::vector<double> sum_moments(const DenseRows<float>&, const WeightedTargets&,
                                         const double*, int);
template std::vector<double> sum_moments(const SparseRows<std::int32_t>&, const WeightedTargets&,
                                         int);
template std::vector<double> sum_moments(const SparseRows<std::int64_t>&, const WeightedTargets&,
                                         int);

}  // namespace spinney::linear
