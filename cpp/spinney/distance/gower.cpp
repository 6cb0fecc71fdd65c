#include "spinney/distance/gower.h"

#include <algorithm>
#include <array>
#include <vector>

#include "spinney/common/check.h"
#include "spinney/common/dispatch.h"
#include "spinney/common/parallel.h"
#include "spinney/distance/nearest.h"

namespace spinney {

namespace {

// Rows are gone through in blocks whose sums stay in the first level of the cache. The block's
// columns stay in the second while a few queries take their turn.
constexpr std::size_t block_length = 512;
constexpr std::size_t n_queries_together = 16;

using Sums = std::array<double, block_length>;

SPINNEY_KERNEL void add_numbers(const double* values, double query, double scale, std::size_t n,
                                double* sums) {
  for (std::size_t i = 0; i < n; ++i) sums[i] += __builtin_fabs(values[i] - query) * scale;
}

SPINNEY_KERNEL void add_numbers_if_there(const double* values, double query, double scale,
                                         double weight, std::size_t n, double* sums,
                                         double* weights) {
  for (std::size_t i = 0; i < n; ++i) {
    const double difference = __builtin_fabs(values[i] - query) * scale;
    const bool is_there = difference == difference;
    sums[i] += is_there ? difference : 0.0;
    weights[i] += is_there ? weight : 0.0;
  }
}

SPINNEY_KERNEL void add_codes(const std::int32_t* codes, std::int32_t query, double weight,
                              std::size_t n, double* sums) {
  for (std::size_t i = 0; i < n; ++i) sums[i] += codes[i] != query ? weight : 0.0;
}

SPINNEY_KERNEL void add_codes_if_there(const std::int32_t* codes, std::int32_t query, double weight,
                                       std::size_t n, double* sums, double* weights) {
  for (std::size_t i = 0; i < n; ++i) {
    const double present = codes[i] >= 0 ? weight : 0.0;
    sums[i] += codes[i] != query ? present : 0.0;
    weights[i] += present;
  }
}

SPINNEY_KERNEL void divide(const double* sums, const double* weights, std::size_t n, double* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = weights[i] > 0 ? sums[i] / weights[i] : 1.0;
}

// Distances of one query to the rows of a block.
void measure(const MixedColumns& columns, const MixedRows& queries, std::size_t query,
             const MixedRows& rows, std::size_t first, std::size_t n, double* out) {
  Sums sums, weights;
  std::fill_n(sums.begin(), n, 0.0);
  std::fill_n(weights.begin(), n, 0.0);
  double shared = 0;  // the weight that all rows of the block have
  for (std::size_t j = 0; j < columns.n_numbers; ++j) {
    const double value = queries.numbers[j * queries.n_rows + query];
    if (value != value) continue;
    const double* const values = rows.numbers + j * rows.n_rows + first;
    const double scale = columns.number_scales[j], weight = columns.number_weights[j];
    if (columns.number_misses[j]) {
      add_numbers_if_there(values, value, scale, weight, n, sums.data(), weights.data());
    } else {
      add_numbers(values, value, scale, n, sums.data());
      shared += weight;
    }
  }
  for (std::size_t j = 0; j < columns.n_codes; ++j) {
    const std::int32_t code = queries.codes[j * queries.n_rows + query];
    if (code < 0 && code != MixedRows::unseen) continue;
    const std::int32_t* const codes = rows.codes + j * rows.n_rows + first;
    const double weight = columns.code_weights[j];
    if (columns.code_misses[j]) {
      add_codes_if_there(codes, code, weight, n, sums.data(), weights.data());
    } else {
      add_codes(codes, code, weight, n, sums.data());
      shared += weight;
    }
  }
  for (std::size_t i = 0; i < n; ++i) weights[i] += shared;
  divide(sums.data(), weights.data(), n, out);
}

// Calls use(query, first row, n, distances) for all queries and blocks of rows, these in ascending
// order; `finish(first query, last query)` follows when a group of queries has met all rows.
template <class Use, class Start, class Finish>
void for_blocks(const MixedColumns& columns, const MixedRows& queries, const MixedRows& rows,
                int n_threads, const Start& start, const Use& use, const Finish& finish) {
  const std::size_t n_groups = (queries.n_rows + n_queries_together - 1) / n_queries_together;
  const double nanoseconds = static_cast<double>(queries.n_rows) *
                             static_cast<double>(rows.n_rows) *
                             (1 + 0.4 * static_cast<double>(columns.n_numbers + columns.n_codes));
  parallel_for(n_groups, worthwhile_threads(nanoseconds, n_threads), [&](std::size_t group, int) {
    const std::size_t from = group * n_queries_together;
    const std::size_t to = std::min(queries.n_rows, from + n_queries_together);
    auto state = start(to - from);
    Sums distances;
    for (std::size_t first = 0; first < rows.n_rows; first += block_length) {
      const std::size_t n = std::min(block_length, rows.n_rows - first);
      for (std::size_t query = from; query < to; ++query) {
        measure(columns, queries, query, rows, first, n, distances.data());
        use(state, query - from, query, first, n, distances.data());
      }
    }
    finish(state, from, to);
  });
}

}  // namespace

void find_nearest_gower(const MixedColumns& columns, const MixedRows& queries,
                        const MixedRows& rows, std::size_t k, int n_threads, double* distances,
                        std::int64_t* indices) {
  if (k == 0 || k > rows.n_rows) throw InputError("gower: k must be from 1 to the number of rows");
  for_blocks(
      columns, queries, rows, n_threads,
      [k](std::size_t n) { return std::vector<Nearest>(n, Nearest(k)); },
      [](std::vector<Nearest>& nearest, std::size_t place, std::size_t, std::size_t first,
         std::size_t n, const double* block) {
        nearest[place].offer_block(block, n, static_cast<std::int64_t>(first));
      },
      [&](std::vector<Nearest>& nearest, std::size_t from, std::size_t to) {
        for (std::size_t query = from; query < to; ++query) {
          nearest[query - from].drain(distances + query * k, indices + query * k);
        }
      });
}

void gower_distances(const MixedColumns& columns, const MixedRows& queries, const MixedRows& rows,
                     int n_threads, double* out) {
  for_blocks(
      columns, queries, rows, n_threads, [](std::size_t) { return 0; },
      [&](int, std::size_t, std::size_t query, std::size_t first, std::size_t n,
          const double* block) { std::copy_n(block, n, out + query * rows.n_rows + first); },
      [](int, std::size_t, std::size_t) {});
}

}  // namespace spinney
