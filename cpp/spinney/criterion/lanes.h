// Several columns of one node side by side: a *lane* is a column. What is done to one lane is done
// to all eight, in the same instruction where the processor can.
//
// Small nodes are sorted exactly: a *key* is a code and the position of its row in the node, and a
// sorting network orders all lanes with the same sequence of minima and maxima, without a branch.
// Large nodes are counted column by column: codes are cut into *cells*, and only the cuts between
// cells are scored; the search then looks at the values inside the two cells beside the best cut.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "spinney/common/dispatch.h"
#include "spinney/common/lanes.h"
#include "spinney/common/types.h"
#include "spinney/criterion/row_targets.h"

namespace spinney::criterion {

// Eight lanes as one value; the compiler makes of it what the instruction set has.
using Lanes32 = std::uint32_t __attribute__((vector_size(32)));
using Lanes64 = std::int64_t __attribute__((vector_size(64)));
using LanesReal = double __attribute__((vector_size(64)));

template <class Vector, class Array>
SPINNEY_INLINE Vector load_lanes(const Array& from) {
  Vector out;
  static_assert(sizeof(out) == sizeof(from));
  __builtin_memcpy(&out, &from, sizeof(out));
  return out;
}
template <class Vector, class Array>
SPINNEY_INLINE void store_lanes(const Vector& from, Array& to) {
  static_assert(sizeof(from) == sizeof(to));
  __builtin_memcpy(&to, &from, sizeof(to));
}
constexpr common::Row max_lane_rows = 256;  // positions take 8 bits of a key,
constexpr int lane_position_bits = 8;
constexpr std::size_t max_lane_codes = std::size_t{1} << 24;  // and codes the other 24
constexpr std::size_t max_cells = 256;

// 1/0 … 1/max_lane_weight: up to this weight of a small node a product replaces a quotient.
constexpr std::int32_t max_lane_weight = 4096;
inline const double* small_reciprocals() {
  static const auto table = [] {
    std::array<double, max_lane_weight + 1> out{};
    for (std::size_t i = 1; i < out.size(); ++i) out[i] = 1.0 / static_cast<double>(i);
    return out;
  }();
  return table.data();
}

// Few lanes in use are worth loops of their own: calls body with the least of 2, 4 and 8 that holds
// n_used, as a constant.
template <class Body>
SPINNEY_INLINE void with_lanes(std::size_t n_used, const Body& body) {
  if (n_used <= 2) {
    body(std::integral_constant<std::size_t, 2>());
  } else if (n_used <= 4) {
    body(std::integral_constant<std::size_t, 4>());
  } else {
    body(std::integral_constant<std::size_t, 8>());
  }
}

struct alignas(32) LaneKeys {
  std::uint32_t lane[common::n_lanes];
};

// Values of one row, and the thresholds up to which they go left.
struct alignas(64) LaneValues {
  double lane[common::n_lanes];
};

// What to do to lanes: the node's rows, the lanes that are columns, and the rows that each side of
// a cut must have.
struct LaneTask {
  RowSpan rows;
  std::size_t n_used = common::n_lanes;
  common::Row margin = 1;
};

// A cell of a criterion that keeps means.
struct MeanCell {
  double sum = 0;
  double weight = 0;
};

// A column of a large node: cells[i] is the cell of the i-th row.
struct CellTask {
  RowSpan rows;
  const std::uint8_t* cells = nullptr;
  std::size_t n_cells = max_cells;
  common::Row margin = 1;
};

// The best cut of a column: after the cell `at`.
struct CellCut {
  double score = -std::numeric_limits<double>::infinity();
  std::uint32_t at = 0;
};

// The best cut of each lane: after `at` rows or cells, less one.
struct LaneBest {
  alignas(64) double score[common::n_lanes];
  std::uint32_t at[common::n_lanes];

  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  void clear() {
    for (std::size_t l = 0; l < common::n_lanes; ++l) {
      score[l] = -std::numeric_limits<double>::infinity();
      at[l] = none;
    }
  }
};

// Keeps the better of the lanes' present cuts; equal neighbours are no cut.
template <std::size_t width>
SPINNEY_INLINE void keep_better(const double* score, const LaneKeys& here, const LaneKeys& next,
                                std::uint32_t i, LaneBest& best) {
  for (std::size_t l = 0; l < width; ++l) {
    const bool differs = ((here.lane[l] ^ next.lane[l]) >> lane_position_bits) != 0;
    const bool better = differs & (score[l] > best.score[l]);
    best.score[l] = better ? score[l] : best.score[l];
    best.at[l] = better ? i : best.at[l];
  }
}

// Sorts every lane of keys[0 … n): Batcher's odd-even merge sort, whose comparisons do not depend
// on the data, with those left out that reach beyond n.
SPINNEY_INLINE void sort_lanes(LaneKeys* keys, std::size_t n) {
  const auto exchange = [&](std::size_t i, std::size_t j) {
    const auto a = load_lanes<Lanes32>(keys[i]);
    const auto b = load_lanes<Lanes32>(keys[j]);
    store_lanes(a < b ? a : b, keys[i]);
    store_lanes(a < b ? b : a, keys[j]);
  };
  for (std::size_t p = 1; p < n; p *= 2) {
    for (std::size_t start = 0; start + p < n; start += 2 * p) {
      const std::size_t end = start + 2 * p < n ? start + 2 * p : n;
      for (std::size_t i = start; i + p < end; ++i) exchange(i, i + p);
      for (std::size_t k = p / 2; k >= 1; k /= 2) {
        for (std::size_t j = start + k; j + k < end; j += 2 * k) {
          const std::size_t stop = j + 2 * k < end ? k : end - j - k;
          for (std::size_t i = j; i < j + stop; ++i) exchange(i, i + k);
        }
      }
    }
  }
}

}  // namespace spinney::criterion
