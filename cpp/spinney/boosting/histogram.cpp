#include "spinney/boosting/histogram.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "spinney/common/dispatch.h"
#include "spinney/common/fixed_point.h"
#include "spinney/common/parallel.h"

namespace spinney::boosting {

using common::dispatch;
using common::nearest;
using common::parallel_for;
using common::Row;
using common::worthwhile_threads;

namespace {

// The largest weighted derivatives of a row.
struct Largest {
  double gradient = 0;
  double hessian = 0;
  double unweighted_hessian = 0;  // of a row with weight 1, if weights are integers
};

constexpr std::size_t n_chains = 16;  // independent maxima, so that loops are vectorized

// If weights are numbers of repeated rows: the largest derivatives of a single row.
SPINNEY_INLINE Largest find_largest_repeated(const float* first, const float* second,
                                             const double* weights, std::size_t n) {
  Largest found;
  for (std::size_t i = 0; i < n; ++i) {
    const bool occurs = weights[i] > 0;
    const double g = occurs ? static_cast<double>(first[i] < 0 ? -first[i] : first[i]) : 0.0;
    const double h = occurs ? static_cast<double>(second[i]) : 0.0;
    found.gradient = g > found.gradient ? g : found.gradient;
    found.hessian = h > found.hessian ? h : found.hessian;
  }
  found.unweighted_hessian = found.hessian;
  return found;
}

SPINNEY_INLINE Largest find_largest(const float* first, const float* second, const double* weights,
                                    bool whole, std::size_t n) {
  Largest found;
  if (weights == nullptr) {
    float gradient[n_chains] = {};
    float hessian[n_chains] = {};
    std::size_t i = 0;
    for (; i + n_chains <= n; i += n_chains) {
      for (std::size_t k = 0; k < n_chains; ++k) {
        const float g = first[i + k] < 0 ? -first[i + k] : first[i + k];
        gradient[k] = g > gradient[k] ? g : gradient[k];
        hessian[k] = second[i + k] > hessian[k] ? second[i + k] : hessian[k];
      }
    }
    for (; i < n; ++i) {
      gradient[0] = std::max(gradient[0], std::abs(first[i]));
      hessian[0] = std::max(hessian[0], second[i]);
    }
    for (std::size_t k = 0; k < n_chains; ++k) {
      found.gradient = std::max(found.gradient, static_cast<double>(gradient[k]));
      found.hessian = std::max(found.hessian, static_cast<double>(hessian[k]));
    }
    found.unweighted_hessian = found.hessian;
    return found;
  }
  for (std::size_t i = 0; i < n; ++i) {
    const double g = weights[i] * static_cast<double>(first[i] < 0 ? -first[i] : first[i]);
    const double h = weights[i] * static_cast<double>(second[i]);
    const double one = whole ? static_cast<double>(second[i]) : h;
    found.gradient = g > found.gradient ? g : found.gradient;
    found.hessian = h > found.hessian ? h : found.hessian;
    found.unweighted_hessian = one > found.unweighted_hessian ? one : found.unweighted_hessian;
  }
  return found;
}

struct UnitSums {
  std::int64_t gradient = 0;  // of absolute values
  std::int64_t hessian = 0;
};

SPINNEY_INLINE UnitSums add_units(const float* first, const float* second, const double* weights,
                                  std::size_t n, double gradient_units, double hessian_units) {
  std::int64_t gradient = 0;
  std::int64_t hessian = 0;
  if (weights == nullptr) {
    for (std::size_t i = 0; i < n; ++i) {
      const float g = first[i] < 0 ? -first[i] : first[i];
      gradient += nearest(static_cast<double>(g) * gradient_units);
      hessian += nearest(static_cast<double>(second[i]) * hessian_units);
    }
  } else {
    for (std::size_t i = 0; i < n; ++i) {
      const float g = first[i] < 0 ? -first[i] : first[i];
      gradient += nearest(weights[i] * static_cast<double>(g) * gradient_units);
      hessian += nearest(weights[i] * static_cast<double>(second[i]) * hessian_units);
    }
  }
  return {gradient, hessian};
}

SPINNEY_INLINE UnitSums add_repeated_units(const float* first, const float* second,
                                           const double* weights, std::size_t n,
                                           double gradient_units, double hessian_units) {
  std::int64_t gradient = 0;
  std::int64_t hessian = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t times = nearest(weights[i]);
    const float g = first[i] < 0 ? -first[i] : first[i];
    gradient += times * nearest(static_cast<double>(g) * gradient_units);
    hessian += times * nearest(static_cast<double>(second[i]) * hessian_units);
  }
  return {gradient, hessian};
}

SPINNEY_INLINE PackedSum join(std::int64_t gradient, std::int64_t hessian) {
  return static_cast<PackedSum>((static_cast<std::uint64_t>(gradient) << 32) +
                                static_cast<std::uint64_t>(hessian));
}

SPINNEY_INLINE void pack_repeated(const float* first, const float* second, const double* weights,
                                  std::size_t n, double gradient_scale, double hessian_scale,
                                  PackedSum* out) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t times = nearest(weights[i]);
    out[i] = join(times * nearest(static_cast<double>(first[i]) * gradient_scale),
                  times * nearest(static_cast<double>(second[i]) * hessian_scale));
  }
}

SPINNEY_INLINE void pack(const float* first, const float* second, const double* weights,
                         std::size_t n, double gradient_scale, double hessian_scale,
                         PackedSum* out) {
  for (std::size_t i = 0; i < n; ++i) {
    const double of_row = weights == nullptr ? 1 : weights[i];
    const std::int64_t gradient = nearest(of_row * static_cast<double>(first[i]) * gradient_scale);
    const std::int64_t hessian = nearest(of_row * static_cast<double>(second[i]) * hessian_scale);
    out[i] = join(gradient, hessian);
  }
}

constexpr std::size_t ahead = 64;  // rows whose codes are prefetched
constexpr std::size_t most_chunk_rows = 8192;
constexpr std::size_t few_rows = 2048;  // chunks of fewer rows add to the histogram directly

// Rows of a chunk and the slots of a group.
struct Chunk {
  const std::uint8_t* codes;  // of the group's first slot, row 0
  std::size_t stride;
  const Row* rows;  // null: 0 … n-1
  const PackedSum* packed;
  std::size_t n;
  bool prefetches;                                // the codes of rows to come
  std::size_t start[table::max_group_width + 1];  // first sum of each slot, then the end
};

template <class Add>
SPINNEY_INLINE void for_rows(const Chunk& chunk, const Add& add) {
  const std::uint8_t* const codes = chunk.codes;
  const std::size_t stride = chunk.stride;
  if (chunk.rows == nullptr) {
    for (std::size_t i = 0; i < chunk.n; ++i) add(codes + i * stride, chunk.packed[i]);
    return;
  }
  std::size_t i = 0;
  if (chunk.prefetches && chunk.n > ahead) {
    for (; i < chunk.n - ahead; ++i) {
      const std::uint8_t* const next = codes + chunk.rows[i + ahead] * stride;
      for (std::size_t line = 0; line < stride; line += 64) {
        common::prefetch_second_level(next + line);
      }
      if (stride % 64 != 0 && stride > 32) common::prefetch_second_level(next + stride - 1);
      add(codes + chunk.rows[i] * stride, chunk.packed[i]);
    }
  }
  for (; i < chunk.n; ++i) add(codes + chunk.rows[i] * stride, chunk.packed[i]);
}

template <std::size_t width>
void add_rows(const Chunk& chunk, PackedSum* out) {
  if (chunk.n >= few_rows) {
    // With constant offsets of columns, an addition is two instructions.
    alignas(64) std::array<PackedSum, width * 256> sums{};
    for_rows(chunk, [&](const std::uint8_t* row, PackedSum sum) {
      SPINNEY_UNROLL(16)
      for (std::size_t j = 0; j < width; ++j) sums[j * 256 + row[j]] += sum;
    });
    for (std::size_t j = 0; j < width; ++j) {
      PackedSum* const to = out + chunk.start[j];
      const std::size_t n_codes = chunk.start[j + 1] - chunk.start[j];
      for (std::size_t code = 0; code < n_codes; ++code) to[code] += sums[j * 256 + code];
    }
    return;
  }
  std::array<PackedSum*, width> to;
  for (std::size_t j = 0; j < width; ++j) to[j] = out + chunk.start[j];
  for_rows(chunk, [&](const std::uint8_t* row, PackedSum sum) {
    SPINNEY_UNROLL(16)
    for (std::size_t j = 0; j < width; ++j) to[j][row[j]] += sum;
  });
}

// Copies sums that are stored by row into a list.
void gather(const PackedSum* of_rows, const Row* rows, std::size_t n, PackedSum* out) {
  std::size_t i = 0;
  for (; i + ahead < n; ++i) {
    common::prefetch_second_level(of_rows + rows[i + ahead]);
    out[i] = of_rows[rows[i]];
  }
  for (; i < n; ++i) out[i] = of_rows[rows[i]];
}

using AddRows = void (*)(const Chunk&, PackedSum*);

template <std::size_t... widths>
constexpr auto add_rows_of(std::index_sequence<widths...>) {
  return std::array<AddRows, sizeof...(widths)>{add_rows<widths + 1>...};
}

constexpr auto add_rows_by_width = add_rows_of(std::make_index_sequence<table::max_group_width>());

// Derivatives that are packed together.
struct PackBlock {
  loss::Derivatives of;
  const double* weights;  // null: all are 1
  std::size_t n;
  PackedSum* out;
};

// Number of rows, repeated by their weights if `repeats`.
std::uint64_t count_repeated(const RowWeights& weights, const Row* rows, std::size_t n) {
  if (!weights.repeats) return n;
  std::int64_t total = 0;
  for (std::size_t i = 0; i < n; ++i) {
    total += nearest(weights.values[rows == nullptr ? i : rows[i]]);
  }
  return static_cast<std::uint64_t>(total);
}

// Packs blocks of rows: n_rows rows, n_repeated with repetitions. block_of(i) may be called several
// times. Derivatives may be packed in place.
template <class BlockOf>
PackedScale pack_blocks(std::size_t n_blocks, std::size_t n_rows, std::uint64_t n_repeated,
                        const RowWeights& weights, bool counts, int threads, const Workers& workers,
                        const BlockOf& block_of) {
  std::vector<Largest> largest_of(n_blocks);
  parallel_for(n_blocks, threads, [&](std::size_t i, int) {
    const PackBlock block = block_of(i);
    largest_of[i] = weights.repeats
                        ? dispatch<find_largest_repeated>(block.of.gradient, block.of.hessian,
                                                          block.weights, block.n)
                        : dispatch<find_largest>(block.of.gradient, block.of.hessian, block.weights,
                                                 weights.whole, block.n);
  });
  double largest[3] = {};
  for (const Largest& of_block : largest_of) {
    largest[0] = std::max(largest[0], of_block.gradient);
    largest[1] = std::max(largest[1], of_block.hessian);
    largest[2] = std::max(largest[2], of_block.unweighted_hessian);
  }
  common::find_max(workers.exchange, largest, 3);
  const std::uint64_t at_most = std::max<std::uint64_t>(n_repeated, workers.n_rows);
  const double gradient_in_one = common::units_in_one(largest[0], at_most);
  const double hessian_in_one = common::units_in_one(largest[1], at_most);
  std::vector<UnitSums> sums_of(n_blocks);
  parallel_for(n_blocks, threads, [&](std::size_t i, int) {
    const PackBlock block = block_of(i);
    sums_of[i] =
        weights.repeats
            ? dispatch<add_repeated_units>(block.of.gradient, block.of.hessian, block.weights,
                                           block.n, gradient_in_one, hessian_in_one)
            : dispatch<add_units>(block.of.gradient, block.of.hessian, block.weights, block.n,
                                  gradient_in_one, hessian_in_one);
  });
  std::int64_t sums[4] = {0, 0, static_cast<std::int64_t>(n_rows),
                          static_cast<std::int64_t>(n_repeated)};
  for (const UnitSums& of_block : sums_of) {
    sums[0] += of_block.gradient;
    sums[1] += of_block.hessian;
  }
  common::add_up(workers.exchange, sums, 4);
  PackedScale scale;
  scale.n_rows = static_cast<std::uint64_t>(sums[2]);
  scale.largest_gradient = largest[0];
  scale.largest_hessian = largest[1];
  // Rounding adds at most half a unit per row twice: to the sums above and to the packed ones.
  const auto slack = static_cast<double>(sums[3]);
  const double total_gradient = (static_cast<double>(sums[0]) + slack) / gradient_in_one;
  const double total_hessian = static_cast<double>(sums[1]) / hessian_in_one;
  const double gradient_scale = largest[0] > 0 ? (0x1p31 - 2 - slack) / total_gradient : 1.0;
  double hessian_scale = 1;
  scale.counts = counts && total_hessian < 0x1p31;
  if (!scale.counts && largest[1] > 0) {
    hessian_scale = (0x1p32 - 2 - slack) / (total_hessian + slack / hessian_in_one);
    const double most = std::ceil(largest[2] * hessian_scale) + 1;
    scale.most = static_cast<std::uint32_t>(std::min(most, 0x1p32 - 1));
  }
  scale.gradient = 1.0 / gradient_scale;
  scale.hessian = 1.0 / hessian_scale;
  parallel_for(n_blocks, threads, [&](std::size_t i, int) {
    const PackBlock block = block_of(i);
    const bool in_place = static_cast<const void*>(block.of.gradient) == block.out;
    std::array<PackedSum, loss::row_block> aside;
    PackedSum* const out = in_place ? aside.data() : block.out;
    if (weights.repeats) {
      dispatch<pack_repeated>(block.of.gradient, block.of.hessian, block.weights, block.n,
                              gradient_scale, hessian_scale, out);
    } else {
      dispatch<pack>(block.of.gradient, block.of.hessian, block.weights, block.n, gradient_scale,
                     hessian_scale, out);
    }
    if (in_place) std::copy_n(aside.data(), block.n, block.out);
  });
  return scale;
}

int packing_threads(std::size_t n, int n_threads) {
  return worthwhile_threads(2.0 * static_cast<double>(n), n_threads, true);
}

}  // namespace

PackedScale pack_gradients(const loss::Derivatives& of, const RowWeights& weights, const Row* rows,
                           std::size_t n, bool counts, int n_threads, const Workers& workers,
                           PackedSum* out) {
  const std::size_t n_blocks = (n + loss::row_block - 1) / loss::row_block;
  const int threads = packing_threads(n, n_threads);
  std::vector<float> first;  // of the listed rows
  std::vector<float> second;
  std::vector<double> own_weights;
  loss::Derivatives chosen = of;
  const double* of_rows = weights.values;
  if (rows != nullptr) {
    first.resize(n);
    second.resize(n);
    chosen = {first.data(), second.data()};
    if (of_rows != nullptr) own_weights.resize(n);
    parallel_for(n_blocks, threads, [&](std::size_t block, int) {
      const std::size_t end = std::min(n, (block + 1) * loss::row_block);
      for (std::size_t i = block * loss::row_block; i < end; ++i) {
        first[i] = of.gradient[rows[i]];
        second[i] = of.hessian[rows[i]];
        if (weights.values != nullptr) own_weights[i] = weights.values[rows[i]];
      }
    });
    if (of_rows != nullptr) of_rows = own_weights.data();
  }
  const auto block_of = [&](std::size_t block) {
    const std::size_t begin = block * loss::row_block;
    return PackBlock{chosen.from(begin), of_rows == nullptr ? nullptr : of_rows + begin,
                     std::min(loss::row_block, n - begin), out + begin};
  };
  return pack_blocks(n_blocks, n, count_repeated(weights, rows, n), weights, counts, threads,
                     workers, block_of);
}

PackedScale pack_at_rows(const loss::Derivatives& of, const RowWeights& weights, const Row* rows,
                         std::size_t n, std::size_t n_table_rows, bool counts, int n_threads,
                         const Workers& workers, PackedSum* out) {
  const std::size_t n_blocks = (n_table_rows + loss::row_block - 1) / loss::row_block;
  const int threads = packing_threads(n_table_rows, n_threads);
  if (n < n_table_rows) {
    parallel_for(n_blocks, threads, [&](std::size_t block, int) {
      const std::size_t begin = block * loss::row_block;
      const std::size_t end = std::min(n_table_rows, begin + loss::row_block);
      const loss::Derivatives here = of.from(begin);
      const Row* next = std::lower_bound(rows, rows + n, static_cast<Row>(begin));
      for (std::size_t row = begin; row < end; ++row) {
        if (next != rows + n && *next == row) {
          ++next;
        } else {
          here.gradient[row - begin] = here.hessian[row - begin] = 0;
        }
      }
    });
  }
  const auto block_of = [&](std::size_t block) {
    const std::size_t begin = block * loss::row_block;
    return PackBlock{of.from(begin), weights.values == nullptr ? nullptr : weights.values + begin,
                     std::min(loss::row_block, n_table_rows - begin), out + begin};
  };
  return pack_blocks(n_blocks, n, count_repeated(weights, rows, n), weights, counts, threads,
                     workers, block_of);
}

void HistogramBuilder::build(const Row* rows, const RowSums& sums, std::size_t n, PackedSum* out) {
  const double work = 0.5 * static_cast<double>(n * matrix_.n_features());
  const int threads = worthwhile_threads(work, n_threads_, true);
  // The rows of a chunk stay in the cache while each group of columns reads them.
  const std::size_t share = n / static_cast<std::size_t>(threads) + 1;
  const std::size_t chunk_rows = std::clamp<std::size_t>(share, few_rows, most_chunk_rows);
  const std::size_t n_chunks = (n + chunk_rows - 1) / chunk_rows;
  const std::size_t n_codes = matrix_.n_codes();
  std::fill(out, out + n_codes, PackedSum{0});
  std::vector<std::uint8_t> used(static_cast<std::size_t>(threads));
  parallel_for(n_chunks, threads, [&](std::size_t chunk_index, int thread) {
    PackedSum* to = out;
    if (thread > 0) {
      std::vector<PackedSum>& own = of_thread_[static_cast<std::size_t>(thread - 1)];
      if (used[static_cast<std::size_t>(thread)] == 0) own.assign(n_codes, 0);
      used[static_cast<std::size_t>(thread)] = 1;
      to = own.data();
    }
    const std::size_t begin = chunk_index * chunk_rows;
    Chunk chunk;
    chunk.stride = matrix_.stride();
    chunk.rows = rows == nullptr ? nullptr : rows + begin;
    chunk.n = std::min(chunk_rows, n - begin);
    chunk.packed = sums.packed + begin;
    std::array<PackedSum, most_chunk_rows> gathered;
    if (sums.by_row && rows != nullptr) {
      gather(sums.packed, chunk.rows, chunk.n, gathered.data());
      chunk.packed = gathered.data();
    }
    const std::uint8_t* const codes =
        matrix_.row_codes() + (rows == nullptr ? begin * chunk.stride : 0);
    for (const table::SlotGroup& group : matrix_.groups()) {
      chunk.codes = codes + group.first;
      chunk.prefetches = group.first == 0;
      for (std::uint32_t j = 0; j < group.width; ++j) {
        const table::CodeSlot& slot = matrix_.slot(group.first + j);
        chunk.start[j] = slot.start;
        chunk.start[j + 1] = slot.start + slot.n_codes;
      }
      add_rows_by_width[group.width - 1](chunk, to);
    }
  });
  for (std::size_t thread = 1; thread < used.size(); ++thread) {
    if (used[thread] == 0) continue;
    const PackedSum* const more = of_thread_[thread - 1].data();
    for (std::size_t i = 0; i < n_codes; ++i) out[i] += more[i];
  }
}

}  // namespace spinney::boosting
