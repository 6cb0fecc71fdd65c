#include "spinney/boosting/histogram.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "spinney/common/parallel.h"

namespace spinney {
namespace {

constexpr std::size_t pack_block = 16'384;

struct Magnitude {
  double gradient = 0;  // sums of absolute values, with weights
  double hessian = 0;
  double most = 0;  // the largest second derivative of a row that counts once
};

constexpr std::size_t n_chains = 16;  // added up in a fixed order, whatever the vectors are

SPINNEY_KERNEL Magnitude measure(const float* first, const float* second, const double* weights,
                                 bool whole, std::size_t n) {
  double gradient[n_chains] = {};
  double hessian[n_chains] = {};
  double most[n_chains] = {};
  std::size_t i = 0;
  for (; i + n_chains <= n; i += n_chains) {
    double of_row[n_chains];
    for (std::size_t k = 0; k < n_chains; ++k) of_row[k] = weights == nullptr ? 1 : weights[i + k];
    for (std::size_t k = 0; k < n_chains; ++k) {
      const float g = first[i + k];
      const float h = second[i + k];
      gradient[k] += of_row[k] * static_cast<double>(g < 0 ? -g : g);
      hessian[k] += of_row[k] * static_cast<double>(h);
      const double of_one = (whole ? 1 : of_row[k]) * static_cast<double>(h);
      most[k] = of_one > most[k] ? of_one : most[k];
    }
  }
  Magnitude total;
  for (; i < n; ++i) {
    const double of_row = weights == nullptr ? 1 : weights[i];
    total.gradient += of_row * static_cast<double>(std::abs(first[i]));
    total.hessian += of_row * static_cast<double>(second[i]);
    total.most = std::max(total.most, (whole ? 1 : of_row) * static_cast<double>(second[i]));
  }
  for (std::size_t k = 0; k < n_chains; ++k) {
    total.gradient += gradient[k];
    total.hessian += hessian[k];
    total.most = std::max(total.most, most[k]);
  }
  return total;
}

// To the nearest integer, halves to the even one, by adding and taking away 1.5 · 2^52.
SPINNEY_INLINE std::int64_t nearest(double x) {
  constexpr double shifter = 0x1.8p52;
  return std::bit_cast<std::int64_t>(x + shifter) - std::bit_cast<std::int64_t>(shifter);
}

SPINNEY_KERNEL void pack(const float* first, const float* second, const double* weights,
                         std::size_t n, double gradient_scale, double hessian_scale,
                         PackedSum* out) {
  for (std::size_t i = 0; i < n; ++i) {
    const double of_row = weights == nullptr ? 1 : weights[i];
    const std::int64_t gradient = nearest(of_row * static_cast<double>(first[i]) * gradient_scale);
    const std::int64_t hessian = nearest(of_row * static_cast<double>(second[i]) * hessian_scale);
    out[i] = static_cast<PackedSum>((static_cast<std::uint64_t>(gradient) << 32) +
                                    static_cast<std::uint64_t>(hessian));
  }
}

constexpr std::size_t ahead = 64;  // rows whose codes are asked for before they are needed
constexpr std::size_t most_chunk_rows = 8192;
constexpr std::size_t few_rows = 2048;  // up to here sums are added where they belong at once

// Rows of a chunk, and the slots of a group.
struct Chunk {
  const std::uint8_t* codes;  // of the group's first slot, row 0
  std::size_t stride;
  const Row* rows;  // null: 0 … n-1
  const PackedSum* packed;
  std::size_t n;
  bool asks;                               // for the cache lines of rows to come
  std::size_t start[max_group_width + 1];  // where the sums of each slot begin, and the end
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
  if (chunk.asks && chunk.n > ahead) {
    for (; i < chunk.n - ahead; ++i) {
      const std::uint8_t* const next = codes + chunk.rows[i + ahead] * stride;
      for (std::size_t line = 0; line < stride; line += 64) __builtin_prefetch(next + line, 0, 2);
      add(codes + chunk.rows[i] * stride, chunk.packed[i]);
    }
  }
  for (; i < chunk.n; ++i) add(codes + chunk.rows[i] * stride, chunk.packed[i]);
}

template <std::size_t width>
void add_rows(const Chunk& chunk, PackedSum* out) {
  if (chunk.n >= few_rows) {
    // Where columns begin at known places an addition is two instructions.
    alignas(64) std::array<PackedSum, width * 256> sums{};
    for_rows(chunk, [&](const std::uint8_t* row, PackedSum sum) {
#pragma GCC unroll 16
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
#pragma GCC unroll 16
    for (std::size_t j = 0; j < width; ++j) to[j][row[j]] += sum;
  });
}

using AddRows = void (*)(const Chunk&, PackedSum*);

template <std::size_t... widths>
constexpr auto add_rows_of(std::index_sequence<widths...>) {
  return std::array<AddRows, sizeof...(widths)>{add_rows<widths + 1>...};
}

constexpr auto add_rows_by_width = add_rows_of(std::make_index_sequence<max_group_width>());

}  // namespace

PackedScale pack_gradients(const Derivatives& of, const RowWeights& weights, const Row* rows,
                           std::size_t n, bool counts, int n_threads, PackedSum* out) {
  const std::size_t n_blocks = (n + pack_block - 1) / pack_block;
  const int threads = worthwhile_threads(2.0 * static_cast<double>(n), n_threads, true);
  std::vector<Magnitude> magnitudes(n_blocks);
  std::vector<float> first;  // those of the rows, side by side
  std::vector<float> second;
  std::vector<double> own_weights;
  Derivatives chosen = of;
  const double* of_rows = weights.values;
  if (rows != nullptr) {
    first.resize(n);
    second.resize(n);
    chosen = {first.data(), second.data()};
    if (of_rows != nullptr) own_weights.resize(n);
    parallel_for(n_blocks, threads, [&](std::size_t block, int) {
      const std::size_t end = std::min(n, (block + 1) * pack_block);
      for (std::size_t i = block * pack_block; i < end; ++i) {
        first[i] = of.first[rows[i]];
        second[i] = of.second[rows[i]];
        if (weights.values != nullptr) own_weights[i] = weights.values[rows[i]];
      }
    });
    if (of_rows != nullptr) of_rows = own_weights.data();
  }
  const auto weights_from = [&](std::size_t i) {
    return of_rows == nullptr ? nullptr : of_rows + i;
  };
  parallel_for(n_blocks, threads, [&](std::size_t block, int) {
    const std::size_t begin = block * pack_block;
    magnitudes[block] = measure(chosen.first + begin, chosen.second + begin, weights_from(begin),
                                weights.whole, std::min(pack_block, n - begin));
  });
  Magnitude total;
  for (const Magnitude& magnitude : magnitudes) {
    total.gradient += magnitude.gradient;
    total.hessian += magnitude.hessian;
    total.most = std::max(total.most, magnitude.most);
  }
  // Rounding adds at most half a unit a row.
  const auto slack = static_cast<double>(n);
  const double gradient_scale = total.gradient > 0 ? (0x1p31 - 2 - slack) / total.gradient : 1.0;
  double hessian_scale = 1;
  PackedScale scale;
  scale.counts = counts && total.hessian < 0x1p31;
  if (!scale.counts && total.hessian > 0) {
    hessian_scale = (0x1p32 - 2 - slack) / total.hessian;
    const double most = std::ceil(total.most * hessian_scale) + 1;
    scale.most = static_cast<std::uint32_t>(std::min(most, 0x1p32 - 1));
  }
  scale.gradient = 1.0 / gradient_scale;
  scale.hessian = 1.0 / hessian_scale;
  parallel_for(n_blocks, threads, [&](std::size_t block, int) {
    const std::size_t begin = block * pack_block;
    pack(chosen.first + begin, chosen.second + begin, weights_from(begin),
         std::min(pack_block, n - begin), gradient_scale, hessian_scale, out + begin);
  });
  return scale;
}

void HistogramBuilder::build(const Row* rows, const RowSums& sums, std::size_t n, PackedSum* out) {
  const double work = 0.5 * static_cast<double>(n * matrix_.n_features());
  const int threads = worthwhile_threads(work, n_threads_, true);
  // Rows of a chunk stay in the cache while one group of columns after another reads them.
  const std::size_t share = n / static_cast<std::size_t>(threads) + 1;
  const std::size_t chunk_rows = std::clamp<std::size_t>(share, few_rows, most_chunk_rows);
  const std::size_t n_chunks = (n + chunk_rows - 1) / chunk_rows;
  const std::size_t n_codes = matrix_.n_codes();
  std::fill(out, out + n_codes, PackedSum{0});
  std::vector<std::uint8_t> used(static_cast<std::size_t>(threads));
  parallel_for(n_chunks, threads, [&](std::size_t piece, int worker) {
    PackedSum* to = out;
    if (worker > 0) {
      std::vector<PackedSum>& own = of_worker_[static_cast<std::size_t>(worker - 1)];
      if (used[static_cast<std::size_t>(worker)] == 0) own.assign(n_codes, 0);
      used[static_cast<std::size_t>(worker)] = 1;
      to = own.data();
    }
    const std::size_t begin = piece * chunk_rows;
    Chunk chunk;
    chunk.stride = matrix_.stride();
    chunk.rows = rows == nullptr ? nullptr : rows + begin;
    chunk.n = std::min(chunk_rows, n - begin);
    chunk.packed = sums.packed + begin;
    std::array<PackedSum, most_chunk_rows> gathered;
    if (sums.by_row && rows != nullptr) {
      for (std::size_t i = 0; i < chunk.n; ++i) gathered[i] = sums.packed[chunk.rows[i]];
      chunk.packed = gathered.data();
    }
    const std::uint8_t* const codes =
        matrix_.row_codes() + (rows == nullptr ? begin * chunk.stride : 0);
    for (const SlotGroup& group : matrix_.groups()) {
      chunk.codes = codes + group.first;
      chunk.asks = group.first == 0;
      for (std::uint32_t j = 0; j < group.width; ++j) {
        const CodeSlot& slot = matrix_.slot(group.first + j);
        chunk.start[j] = slot.start;
        chunk.start[j + 1] = slot.start + slot.n_codes;
      }
      add_rows_by_width[group.width - 1](chunk, to);
    }
  });
  for (std::size_t worker = 1; worker < used.size(); ++worker) {
    if (used[worker] == 0) continue;
    const PackedSum* const more = of_worker_[worker - 1].data();
    for (std::size_t i = 0; i < n_codes; ++i) out[i] += more[i];
  }
}

}  // namespace spinney
