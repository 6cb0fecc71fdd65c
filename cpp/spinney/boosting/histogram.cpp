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
  double gradient = 0;  // sums of absolute values
  double hessian = 0;
  float most = 0;  // the largest second derivative
};

SPINNEY_KERNEL Magnitude measure_all(const GradientPair* pairs, std::size_t n) {
  double gradient[4] = {};
  double hessian[4] = {};
  float most[4] = {};
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (std::size_t k = 0; k < 4; ++k) {
      const GradientPair pair = pairs[i + k];
      gradient[k] += static_cast<double>(pair.gradient < 0 ? -pair.gradient : pair.gradient);
      hessian[k] += static_cast<double>(pair.hessian);
      most[k] = pair.hessian > most[k] ? pair.hessian : most[k];
    }
  }
  for (; i < n; ++i) {
    gradient[0] += static_cast<double>(std::abs(pairs[i].gradient));
    hessian[0] += static_cast<double>(pairs[i].hessian);
    most[0] = std::max(most[0], pairs[i].hessian);
  }
  return {(gradient[0] + gradient[1]) + (gradient[2] + gradient[3]),
          (hessian[0] + hessian[1]) + (hessian[2] + hessian[3]),
          std::max(std::max(most[0], most[1]), std::max(most[2], most[3]))};
}

// To the nearest integer, halves to the even one, by adding and taking away 1.5 · 2^52.
SPINNEY_INLINE std::int64_t nearest(double x) {
  constexpr double shifter = 0x1.8p52;
  return std::bit_cast<std::int64_t>(x + shifter) - std::bit_cast<std::int64_t>(shifter);
}

SPINNEY_KERNEL void pack_all(const GradientPair* pairs, std::size_t n, double gradient_scale,
                             double hessian_scale, PackedSum* out) {
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t gradient = nearest(static_cast<double>(pairs[i].gradient) * gradient_scale);
    const std::int64_t hessian = nearest(static_cast<double>(pairs[i].hessian) * hessian_scale);
    out[i] = static_cast<PackedSum>((static_cast<std::uint64_t>(gradient) << 32) +
                                    static_cast<std::uint64_t>(hessian));
  }
}

// A row's codes are `width` bytes side by side; start[j] is where the counts of column j begin.
template <std::size_t width>
void add_rows(const std::uint8_t* codes, const Row* rows, const PackedSum* packed, std::size_t n,
              const std::uint32_t* start, PackedSum* out) {
  std::array<std::uint32_t, width> at;
  for (std::size_t j = 0; j < width; ++j) at[j] = start[j];
  const auto add = [&](const std::uint8_t* row, PackedSum sum) {
#pragma GCC unroll 16
    for (std::size_t j = 0; j < width; ++j) out[at[j] + row[j]] += sum;
  };
  if (rows == nullptr) {
    for (std::size_t i = 0; i < n; ++i) add(codes + i * width, packed[i]);
    return;
  }
  constexpr std::size_t ahead = 16;
  const std::size_t far = n > ahead ? n - ahead : 0;
  for (std::size_t i = 0; i < far; ++i) {
    __builtin_prefetch(codes + rows[i + ahead] * width);
    add(codes + rows[i] * width, packed[i]);
  }
  for (std::size_t i = far; i < n; ++i) add(codes + rows[i] * width, packed[i]);
}

using AddRows = void (*)(const std::uint8_t*, const Row*, const PackedSum*, std::size_t,
                         const std::uint32_t*, PackedSum*);

template <std::size_t... widths>
constexpr auto add_rows_of(std::index_sequence<widths...>) {
  return std::array<AddRows, sizeof...(widths)>{add_rows<widths + 1>...};
}

constexpr auto add_rows_by_width = add_rows_of(std::make_index_sequence<max_group_width>());

}  // namespace

PackedScale pack_gradients(const GradientPair* pairs, const Row* rows, std::size_t n, bool counts,
                           int n_threads, PackedSum* out) {
  const std::size_t n_blocks = (n + pack_block - 1) / pack_block;
  const int threads = worthwhile_threads(2.0 * static_cast<double>(n), n_threads);
  std::vector<Magnitude> magnitudes(n_blocks);
  std::vector<GradientPair> chosen;  // the pairs in the order of the rows
  if (rows != nullptr) {
    chosen.resize(n);
    parallel_for(n_blocks, threads, [&](std::size_t block, int) {
      const std::size_t end = std::min(n, (block + 1) * pack_block);
      for (std::size_t i = block * pack_block; i < end; ++i) chosen[i] = pairs[rows[i]];
    });
    pairs = chosen.data();
  }
  parallel_for(n_blocks, threads, [&](std::size_t block, int) {
    const std::size_t begin = block * pack_block;
    magnitudes[block] = measure_all(pairs + begin, std::min(pack_block, n - begin));
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
  scale.counts = counts;
  if (counts) {
    hessian_scale = total.most > 0 ? 1.0 / static_cast<double>(total.most) : 1.0;
  } else if (total.hessian > 0) {
    hessian_scale = (0x1p32 - 2 - slack) / total.hessian;
    scale.most =
        static_cast<std::uint32_t>(std::ceil(static_cast<double>(total.most) * hessian_scale)) + 1;
  }
  scale.gradient = 1.0 / gradient_scale;
  scale.hessian = 1.0 / hessian_scale;
  parallel_for(n_blocks, threads, [&](std::size_t block, int) {
    const std::size_t begin = block * pack_block;
    pack_all(pairs + begin, std::min(pack_block, n - begin), gradient_scale, hessian_scale,
             out + begin);
  });
  return scale;
}

void build_histogram(const BinnedMatrix& matrix, const Row* rows, const PackedSum* packed,
                     std::size_t n, int n_threads, PackedSum* out) {
  const auto groups = matrix.groups();
  const double work = 0.7 * static_cast<double>(n * matrix.n_features());
  parallel_for(groups.size(), worthwhile_threads(work, n_threads), [&](std::size_t g, int) {
    const ColumnGroup& group = groups[g];
    std::array<std::uint32_t, max_group_width> start{};
    for (std::uint32_t j = 0; j < group.width; ++j) start[j] = matrix.column(group.first + j).start;
    const BinnedColumn& last = matrix.column(group.first + group.width - 1);
    std::fill(out + start[0], out + last.start + last.n_codes(), PackedSum{0});
    add_rows_by_width[group.width - 1](group.codes.data(), rows, packed, n, start.data(), out);
  });
}

}  // namespace spinney
