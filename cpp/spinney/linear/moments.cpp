#include "spinney/linear/moments.h"

#include <algorithm>

#include "spinney/common/large_array.h"
#include "spinney/common/parallel.h"
#include "spinney/linear/block_kernels.h"

namespace spinney::linear {

using common::parallel_for;
using common::worthwhile_threads;

namespace {

constexpr std::size_t most_pieces = 64;
constexpr std::size_t most_numbers = std::size_t{1} << 22;  // that the sums of all pieces may have

// Columns x, y and ones of a block.
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

// A block of one thread: its columns, and those times the weights.
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
  const std::size_t n_sides = round_to_tiles(n_columns) / tile_side;
  const std::size_t size = lanes_of_products(n_columns);
  const std::size_t room = std::max<std::size_t>(1, most_numbers / size);
  const Pieces pieces(rows.n_rows, block_rows, std::min(most_pieces, room));
  const double work = 0.1 * static_cast<double>(rows.n_rows) * static_cast<double>(n_columns) *
                      static_cast<double>(n_columns);
  const int threads = worthwhile_threads(work, n_threads);
  // Where sums are large, threads share the tiles of a block instead of the rows.
  const bool by_tiles = room < 8;
  common::LargeArray<double> lanes(pieces.n_pieces * size);
  std::fill(lanes.begin(), lanes.end(), 0.0);
  const auto add_piece = [&](std::size_t piece) {
    Columns columns(n_columns, targets.weights != nullptr);
    double* const sums = lanes.data() + piece * size;
    for (std::size_t row = pieces.begin(piece); row < pieces.end(piece); row += block_rows) {
      const std::size_t n = std::min(block_rows, pieces.end(piece) - row);
      columns.read(rows, targets, centre, row, n);
      if (!by_tiles) {
        add_products(columns.left(), columns.plain.data(), n_columns, 0, n_sides, sums);
        continue;
      }
      parallel_for(n_sides, threads, [&](std::size_t side, int) {
        add_products(columns.left(), columns.plain.data(), n_columns, side, side + 1, sums);
      });
    }
  };
  if (by_tiles) {
    for (std::size_t piece = 0; piece < pieces.n_pieces; ++piece) add_piece(piece);
  } else {
    parallel_for(pieces.n_pieces, threads, [&](std::size_t piece, int) { add_piece(piece); });
  }
  for (std::size_t piece = 1; piece < pieces.n_pieces; ++piece) {
    const double* const from = lanes.data() + piece * size;
    for (std::size_t i = 0; i < size; ++i) lanes[i] += from[i];
  }
  std::vector<double> out(n_columns * n_columns);
  if (pieces.n_pieces > 0) spread_products(lanes.data(), n_columns, out.data());
  return out;
}

template <class Index>
std::vector<double> sum_moments(const SparseRows<Index>& rows, const WeightedTargets& targets,
                                int n_threads) {
  const std::size_t d = rows.n_features, m = targets.n_targets, n_columns = d + m + 1;
  const std::size_t size = n_columns * n_columns;
  const std::size_t room = std::max<std::size_t>(1, most_numbers / size);
  const Pieces pieces(rows.n_rows, block_rows, std::min(most_pieces, room));
  std::vector<double> sums(std::max<std::size_t>(1, pieces.n_pieces) * size, 0.0);
  const auto n_stored = static_cast<double>(rows.starts[rows.n_rows]);
  const double work =
      n_stored * (n_stored / static_cast<double>(std::max<std::size_t>(1, rows.n_rows)) +
                  static_cast<double>(m));
  parallel_for(pieces.n_pieces, worthwhile_threads(work, n_threads), [&](std::size_t piece, int) {
    double* const out = sums.data() + piece * size;
    for (std::size_t row = pieces.begin(piece); row < pieces.end(piece); ++row) {
      const double weight = targets.weights == nullptr ? 1 : targets.weights[row];
      const auto begin = static_cast<std::size_t>(rows.starts[row]);
      const auto end = static_cast<std::size_t>(rows.starts[row + 1]);
      const double* const y = targets.values + row * m;
      for (std::size_t i = begin; i < end; ++i) {
        const double value = weight * rows.values[i];
        double* const line = out + static_cast<std::size_t>(rows.columns[i]) * n_columns;
        for (std::size_t j = i; j < end; ++j) line[rows.columns[j]] += value * rows.values[j];
        for (std::size_t t = 0; t < m; ++t) line[d + t] += value * y[t];
        line[d + m] += value;
      }
      for (std::size_t s = 0; s < m; ++s) {
        double* const line = out + (d + s) * n_columns + d;
        for (std::size_t t = s; t < m; ++t) line[t] += weight * y[s] * y[t];
        line[m] += weight * y[s];
      }
      out[size - 1] += weight;
    }
  });
  for (std::size_t piece = 1; piece < pieces.n_pieces; ++piece) {
    for (std::size_t i = 0; i < size; ++i) sums[i] += sums[piece * size + i];
  }
  sums.resize(size);
  // Columns of a row ascend, so that only the upper half was added to.
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
