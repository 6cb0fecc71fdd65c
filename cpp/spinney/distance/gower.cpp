#include "spinney/distance/gower.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "spinney/common/check.h"
#include "spinney/common/dispatch.h"
#include "spinney/common/parallel.h"
#include "spinney/distance/nearest.h"

namespace spinney::distance {

using common::dispatch;
using common::parallel_for;
using common::worthwhile_threads;

namespace {

// Rows are processed in blocks whose sums fit into the L1 cache. The columns of a block stay in the
// L2 cache while several queries use them.
constexpr std::size_t block_length = 512;
constexpr std::size_t queries_per_group = 16;

using Sums = std::array<double, block_length>;
using Counts = std::array<std::int32_t, block_length>;

SPINNEY_INLINE void add_numbers_kernel(const double* values, double query, double scale,
                                       std::size_t n, double* sums) {
  for (std::size_t i = 0; i < n; ++i) sums[i] += std::abs(values[i] - query) * scale;
}

void add_numbers(const double* values, double query, double scale, std::size_t n, double* sums) {
  dispatch<add_numbers_kernel>(values, query, scale, n, sums);
}

SPINNEY_INLINE void add_numbers_if_present_kernel(const double* values, double query, double scale,
                                                  double weight, std::size_t n, double* sums,
                                                  double* weights) {
  for (std::size_t i = 0; i < n; ++i) {
    const double difference = std::abs(values[i] - query) * scale;
    const bool is_present = difference == difference;
    sums[i] += is_present ? difference : 0.0;
    weights[i] += is_present ? weight : 0.0;
  }
}

void add_numbers_if_present(const double* values, double query, double scale, double weight,
                            std::size_t n, double* sums, double* weights) {
  dispatch<add_numbers_if_present_kernel>(values, query, scale, weight, n, sums, weights);
}

SPINNEY_INLINE void count_codes_kernel(const std::int32_t* codes, std::int32_t query, std::size_t n,
                                       std::int32_t* different) {
  for (std::size_t i = 0; i < n; ++i) different[i] += codes[i] != query;
}

void count_codes(const std::int32_t* codes, std::int32_t query, std::size_t n,
                 std::int32_t* different) {
  dispatch<count_codes_kernel>(codes, query, n, different);
}

SPINNEY_INLINE void count_codes_if_present_kernel(const std::int32_t* codes, std::int32_t query,
                                                  std::size_t n, std::int32_t* different,
                                                  std::int32_t* present) {
  for (std::size_t i = 0; i < n; ++i) {
    different[i] += static_cast<int>(codes[i] != query) & static_cast<int>(codes[i] >= 0);
    present[i] += codes[i] >= 0;
  }
}

void count_codes_if_present(const std::int32_t* codes, std::int32_t query, std::size_t n,
                            std::int32_t* different, std::int32_t* present) {
  dispatch<count_codes_if_present_kernel>(codes, query, n, different, present);
}

SPINNEY_INLINE void add_counts_kernel(const std::int32_t* counts, double weight, std::size_t n,
                                      double* sums) {
  for (std::size_t i = 0; i < n; ++i) sums[i] += weight * counts[i];
}

void add_counts(const std::int32_t* counts, double weight, std::size_t n, double* sums) {
  dispatch<add_counts_kernel>(counts, weight, n, sums);
}

SPINNEY_INLINE void divide_kernel(const double* sums, double weight, std::size_t n, double* out) {
  for (std::size_t i = 0; i < n; ++i) out[i] = sums[i] / weight;
}

void divide(const double* sums, double weight, std::size_t n, double* out) {
  dispatch<divide_kernel>(sums, weight, n, out);
}

// Row i has the weight weights[i] + shared.
SPINNEY_INLINE void divide_each_kernel(const double* sums, const double* weights, double shared,
                                       std::size_t n, double* out) {
  for (std::size_t i = 0; i < n; ++i) {
    const double weight = weights[i] + shared;
    const double mean = sums[i] / weight;
    out[i] = weight > 0 ? mean : 1.0;
  }
}

void divide_each(const double* sums, const double* weights, double shared, std::size_t n,
                 double* out) {
  dispatch<divide_each_kernel>(sums, weights, shared, n, out);
}

// out[i] is negative if sums[i] / weight is below the bound or the weight is zero.
SPINNEY_INLINE void compare_each_kernel(const double* sums, const double* weights, double shared,
                                        double bound, std::size_t n, double* out) {
  for (std::size_t i = 0; i < n; ++i) {
    const double weight = weights[i] + shared;
    const double excess = sums[i] - bound * weight;
    out[i] = weight > 0 ? excess : -1.0;
  }
}

void compare_each(const double* sums, const double* weights, double shared, double bound,
                  std::size_t n, double* out) {
  dispatch<compare_each_kernel>(sums, weights, shared, bound, n, out);
}

// Sums over the columns for the rows of a block, and the weights that divide them.
struct Block {
  std::size_t n;
  Sums sums, weights;
  double shared = 0;         // weight of the columns without missing values
  bool has_weights = false;  // whether other columns add to single rows

  explicit Block(std::size_t n_rows) : n(n_rows) { std::fill_n(sums.begin(), n, 0.0); }

  double* row_weights() {
    if (!has_weights) std::fill_n(weights.begin(), n, 0.0);
    has_weights = true;
    return weights.data();
  }

  double distance(std::size_t i) const {
    const double weight = shared + (has_weights ? weights[i] : 0.0);
    return weight > 0 ? sums[i] / weight : 1.0;
  }

  void write(double* out) const {
    if (has_weights) {
      divide_each(sums.data(), weights.data(), shared, n, out);
    } else if (shared > 0) {
      divide(sums.data(), shared, n, out);
    } else {
      std::fill_n(out, n, 1.0);
    }
  }

  // Divisions are the most expensive step. Candidates are selected by a product, with a margin for
  // rounding, and only candidates are divided.
  void offer(Nearest& nearest, std::int64_t first) const {
    Sums values;
    if (!nearest.is_full() || (shared == 0 && !has_weights)) {
      write(values.data());
      return nearest.add_block(values.data(), n, first);
    }
    const double bound = nearest.worst() * (1 + 1e-14);
    const double* compared = sums.data();
    double limit = bound * shared;
    if (has_weights) {
      compare_each(sums.data(), weights.data(), shared, bound, n, values.data());
      compared = values.data();
      limit = 0;
    }
    for (std::size_t i = 0; (i = find_below(compared, i, n, limit)) < n; ++i) {
      nearest.add(distance(i), first + static_cast<RowIndex>(i));
    }
  }
};

void add_all_numbers(const MixedColumns& columns, const MixedRows& queries, std::size_t query,
                     const MixedRows& rows, std::size_t first, Block& block) {
  for (std::size_t j = 0; j < columns.n_numbers; ++j) {
    const double value = queries.numbers[j * queries.n_rows + query];
    if (value != value) continue;
    const double* const values = rows.numbers + j * rows.n_rows + first;
    const double scale = columns.number_scales[j], weight = columns.number_weights[j];
    if (columns.number_misses[j]) {
      add_numbers_if_present(values, value, scale, weight, block.n, block.sums.data(),
                             block.row_weights());
    } else {
      add_numbers(values, value, scale, block.n, block.sums.data());
      block.shared += weight;
    }
  }
}

// Consecutive columns of equal weight are counted in integers first, since a vector holds twice as
// many integers as doubles.
void add_all_codes(const MixedColumns& columns, const MixedRows& queries, std::size_t query,
                   const MixedRows& rows, std::size_t first, Block& block) {
  Counts different, present;
  for (std::size_t from = 0, to = 0; from < columns.n_codes; from = to) {
    const double weight = columns.code_weights[from];
    std::fill_n(different.begin(), block.n, 0);
    bool is_counted = false;
    for (to = from; to < columns.n_codes && columns.code_weights[to] == weight; ++to) {
      const std::int32_t code = queries.codes[to * queries.n_rows + query];
      if (code < 0 && code != MixedRows::unseen) continue;
      const std::int32_t* const codes = rows.codes + to * rows.n_rows + first;
      if (columns.code_misses[to]) {
        if (!is_counted) std::fill_n(present.begin(), block.n, 0);
        is_counted = true;
        count_codes_if_present(codes, code, block.n, different.data(), present.data());
      } else {
        count_codes(codes, code, block.n, different.data());
        block.shared += weight;
      }
    }
    add_counts(different.data(), weight, block.n, block.sums.data());
    if (is_counted) add_counts(present.data(), weight, block.n, block.row_weights());
  }
}

// Calls use(state, query, first row, block) for all queries and blocks of rows, blocks in ascending
// order. start(n) creates the state of a group of n queries, and finish(state, first, last)
// receives it after the last block.
template <class Start, class Use, class Finish>
void for_blocks(const MixedColumns& columns, const MixedRows& queries, const MixedRows& rows,
                int n_threads, const Start& start, const Use& use, const Finish& finish) {
  const std::size_t n_groups = (queries.n_rows + queries_per_group - 1) / queries_per_group;
  const double nanoseconds = static_cast<double>(queries.n_rows) *
                             static_cast<double>(rows.n_rows) *
                             (1 + 0.2 * static_cast<double>(columns.n_numbers + columns.n_codes));
  parallel_for(n_groups, worthwhile_threads(nanoseconds, n_threads), [&](std::size_t group, int) {
    const std::size_t from = group * queries_per_group;
    const std::size_t to = std::min(queries.n_rows, from + queries_per_group);
    auto state = start(to - from);
    for (std::size_t first = 0; first < rows.n_rows; first += block_length) {
      for (std::size_t query = from; query < to; ++query) {
        Block block(std::min(block_length, rows.n_rows - first));
        add_all_numbers(columns, queries, query, rows, first, block);
        add_all_codes(columns, queries, query, rows, first, block);
        use(state, query, first, block);
      }
    }
    finish(state, from, to);
  });
}

}  // namespace

void find_nearest_gower(const MixedColumns& columns, const MixedRows& queries,
                        const MixedRows& rows, std::size_t k, int n_threads, double* distances,
                        std::int64_t* indices) {
  if (k == 0 || k > rows.n_rows) {
    throw common::InputError("gower: k must be from 1 to the number of rows");
  }
  using Group = std::vector<Nearest>;
  for_blocks(
      columns, queries, rows, n_threads, [k](std::size_t n) { return Group(n, Nearest(k)); },
      [](Group& group, std::size_t query, std::size_t first, const Block& block) {
        block.offer(group[query % queries_per_group], static_cast<std::int64_t>(first));
      },
      [&](Group& group, std::size_t from, std::size_t to) {
        for (std::size_t query = from; query < to; ++query) {
          group[query - from].drain(distances + query * k, indices + query * k);
        }
      });
}

void gower_distances(const MixedColumns& columns, const MixedRows& queries, const MixedRows& rows,
                     int n_threads, double* out) {
  for_blocks(
      columns, queries, rows, n_threads, [](std::size_t) { return 0; },
      [&](int, std::size_t query, std::size_t first, const Block& block) {
        block.write(out + query * rows.n_rows + first);
      },
      [](int, std::size_t, std::size_t) {});
}

}  // namespace spinney::distance
