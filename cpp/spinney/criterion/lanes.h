// Eight columns of a node in SIMD vectors: a *lane* is a column.
//
// Small nodes are sorted: a *key* is a code and the position of its row in the node. A sorting
// network sorts all lanes with the same minima and maxima, without branches. Large nodes use a
// histogram per column: a *cell* is a range of codes, and only cuts between cells are scored. The
// search then scans the values inside the two cells next to the best cut.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include "spinney/common/simd.h"
#include "spinney/common/types.h"
#include "spinney/criterion/row_targets.h"

namespace spinney::criterion {

constexpr std::size_t n_lanes = 8;
constexpr common::Row max_lane_rows = 256;  // a key has 8 bits for the position
constexpr int lane_position_bits = 8;
constexpr std::size_t max_lane_codes = std::size_t{1} << 24;  // and 24 for the code
constexpr std::size_t max_cells = 256;

// 1/i up to the largest weight of a small node, so that a product replaces a division; 1/0 is 0.
constexpr std::int32_t max_lane_weight = 4096;
inline const double* small_reciprocals() {
  static const auto table = [] {
    std::array<double, max_lane_weight + 1> out{};
    for (std::size_t i = 1; i < out.size(); ++i) out[i] = 1.0 / static_cast<double>(i);
    return out;
  }();
  return table.data();
}

// Calls body with the smallest of 2, 4 and 8 that is at least n_used, as a constant.
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
  std::uint32_t lane[n_lanes];
};

// One number per lane: the values of a row, or thresholds.
struct alignas(64) LaneValues {
  double lane[n_lanes];
};

// The node's rows, the number of lanes in use, and the minimum number of rows on each side
// (margin).
struct LaneTask {
  RowSpan rows;
  std::size_t n_used = n_lanes;
  common::Row margin = 1;
};

// The sums of one cell for squared error.
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

// The best cut of a column: the cells up to `at` go left.
struct CellCut {
  double score = -std::numeric_limits<double>::infinity();
  std::uint32_t at = 0;
};

// The best cut of each lane: the rows at positions 0 … at go left.
struct LaneBest {
  alignas(64) double score[n_lanes];
  std::uint32_t at[n_lanes];

  static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  void clear() {
    for (std::size_t l = 0; l < n_lanes; ++l) {
      score[l] = -std::numeric_limits<double>::infinity();
      at[l] = none;
    }
  }
};

// Stores the current cut of each lane if it is better. Equal neighbours cannot be cut apart.
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

// Sorts every lane of keys[0 … n) by Batcher's odd-even merge sort. Its comparisons do not depend
// on the data; those with positions beyond n are skipped.
SPINNEY_INLINE void sort_lanes(LaneKeys* keys, std::size_t n) {
  const auto exchange = [&](std::size_t i, std::size_t j) SPINNEY_INLINE_LAMBDA {
    const auto a = common::load<common::Unsigned8>(keys[i].lane);
    const auto b = common::load<common::Unsigned8>(keys[j].lane);
    common::store(keys[i].lane, common::minimum(a, b));
    common::store(keys[j].lane, common::maximum(a, b));
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
