#include "spinney/linear/leave_one_out.h"

#include <algorithm>

#include "spinney/common/large_array.h"
#include "spinney/common/parallel.h"
#include "spinney/linear/block_kernels.h"

namespace spinney::linear {

using common::parallel_for;
using common::worthwhile_threads;

template <class T>
std::vector<double> leave_one_out(const DenseRows<T>& rows, const WeightedTargets& targets,
                                  const RidgePath& path, int n_threads, double* predictions) {
  const std::size_t d = rows.n_features, m = targets.n_targets, r = path.n_basis;
  const std::size_t n_sums = path.n_alphas * m;
  const Chunks chunks(rows.n_rows, block_rows, 64);
  std::vector<double> sums(std::max<std::size_t>(1, chunks.n_chunks) * n_sums, 0.0);
  // Column-major, padded to a multiple of tile_side.
  std::vector<double> basis(round_to_tiles(r) * d);
  for (std::size_t j = 0; j < d; ++j) {
    for (std::size_t i = 0; i < r; ++i) basis[i * d + j] = path.basis[j * r + i];
  }
  const double work = 0.2 * static_cast<double>(rows.n_rows) * static_cast<double>(r) *
                      static_cast<double>(d + path.n_alphas * (1 + m));
  parallel_for(chunks.n_chunks, worthwhile_threads(work, n_threads), [&](std::size_t chunk, int) {
    common::LargeArray<double> columns(d * column_stride),
        rotated(round_to_tiles(r) * column_stride), squares(r * column_stride);
    double leverages[block_rows], fitted[block_rows];
    double* const out = sums.data() + chunk * n_sums;
    for (std::size_t first = chunks.begin(chunk); first < chunks.end(chunk); first += block_rows) {
      const std::size_t n = std::min(block_rows, chunks.end(chunk) - first);
      read_block(rows, first, n, path.centre, columns.data());
      for (std::size_t i = 0; i < r; i += 4) {
        combine_columns_by_four(columns.data(), basis.data() + i * d, d, d,
                                rotated.data() + i * column_stride);
      }
      for (std::size_t i = 0; i < r; ++i) {
        const double* const z = rotated.data() + i * column_stride;
        double* const square = squares.data() + i * column_stride;
        for (std::size_t row = 0; row < block_rows; ++row) square[row] = z[row] * z[row];
      }
      for (std::size_t a = 0; a < path.n_alphas; ++a) {
        combine_columns(squares.data(), path.shrinkage + a * r, r, leverages);
        for (std::size_t t = 0; t < m; ++t) {
          combine_columns(rotated.data(), path.weights + (a * m + t) * r, r, fitted);
          double sum = 0;
          for (std::size_t row = 0; row < n; ++row) {
            const double weight = targets.weights == nullptr ? 1 : targets.weights[first + row];
            const double y = targets.values[(first + row) * m + t];
            const double residual = y - (fitted[row] + path.intercepts[t]);
            const double remaining = 1 - weight * (leverages[row] + path.base_leverage);
            const double error = residual / remaining;
            sum += weight * error * error;
            if (predictions != nullptr) {
              predictions[((first + row) * m + t) * path.n_alphas + a] = y - error;
            }
          }
          out[a * m + t] += sum;
        }
      }
    }
  });
  for (std::size_t chunk = 1; chunk < chunks.n_chunks; ++chunk) {
    for (std::size_t i = 0; i < n_sums; ++i) sums[i] += sums[chunk * n_sums + i];
  }
  sums.resize(n_sums);
  return sums;
}

template std::vector<double> leave_one_out(const DenseRows<double>&, const WeightedTargets&,
                                           const RidgePath&, int, double*);
template std::vector<double> leave_one_out(const DenseRows<float>&, const WeightedTargets&,
                                           const RidgePath&, int, double*);

}  // namespace spinney::linear
