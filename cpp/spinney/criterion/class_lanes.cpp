#include "spinney/criterion/class_lanes.h"

#include <algorithm>

namespace spinney {
namespace {

SPINNEY_KERNEL void scan_two(const ClassLanes& node, const LaneKeys* keys, Row n,
                             const LaneRows& rows, LaneBest& out) {
  const auto total = static_cast<std::int32_t>(node.stat[0]);
  const auto ones = static_cast<std::int32_t>(node.stat[2]);
  alignas(64) std::int32_t left[n_lanes] = {};
  alignas(64) std::int32_t left_ones[n_lanes] = {};
  LaneBest best = out;
  const Row last = n - node.margin;
  for (Row i = 0; i < last; ++i) {
    alignas(64) double score[n_lanes];
    for (std::size_t l = 0; l < n_lanes; ++l) {
      const std::uint32_t position = keys[i].lane[l] & (max_lane_rows - 1);
      const std::int32_t w = rows.weight[position];
      left[l] += w;
      left_ones[l] += rows.label[position] != 0 ? w : 0;
      const std::int32_t right = total - left[l];
      const std::int32_t right_ones = ones - left_ones[l];
      const auto left_mix = static_cast<double>(left_ones[l] * (left[l] - left_ones[l]));
      const auto right_mix = static_cast<double>(right_ones * (right - right_ones));
      score[l] =
          -(left_mix * node.reciprocals[left[l]] + right_mix * node.reciprocals[right]);
    }
    if (i + 1 >= node.margin) keep_better(score, keys[i], keys[i + 1], i, best);
  }
  out = best;
}

SPINNEY_KERNEL void scan_many(const ClassLanes& node, const LaneKeys* keys, Row n,
                              const LaneRows& rows, LaneBest& out) {
  const std::uint32_t n_classes = node.n_classes;
  std::int32_t twice_total[max_lane_classes];
  std::int32_t left_counts[max_lane_classes * n_lanes];
  std::int32_t squares_of_total = 0;
  const auto total = static_cast<std::int32_t>(node.stat[0]);
  for (std::uint32_t k = 0; k < n_classes; ++k) {
    const auto count = static_cast<std::int32_t>(node.stat[1 + k]);
    twice_total[k] = 2 * count;
    squares_of_total += count * count;
  }
  std::fill(left_counts, left_counts + n_classes * n_lanes, 0);
  alignas(64) std::int32_t left[n_lanes] = {};
  alignas(64) std::int32_t squares[n_lanes] = {};
  alignas(64) std::int32_t offset[n_lanes];
  for (std::size_t l = 0; l < n_lanes; ++l) offset[l] = squares_of_total;
  LaneBest best = out;
  const Row last = n - node.margin;
  for (Row i = 0; i < last; ++i) {
    alignas(64) double score[n_lanes];
    for (std::size_t l = 0; l < n_lanes; ++l) {
      const std::uint32_t position = keys[i].lane[l] & (max_lane_rows - 1);
      const std::int32_t w = rows.weight[position];
      const std::uint32_t k = rows.label[position];
      std::int32_t& count = left_counts[k * n_lanes + l];
      squares[l] += w * (2 * count + w);
      offset[l] -= w * twice_total[k];
      count += w;
      left[l] += w;
      score[l] = static_cast<double>(squares[l]) * node.reciprocals[left[l]] +
                 static_cast<double>(squares[l] + offset[l]) * node.reciprocals[total - left[l]];
    }
    if (i + 1 >= node.margin) keep_better(score, keys[i], keys[i + 1], i, best);
  }
  out = best;
}

// Adds the rows to counts[lane][cell][class]; where a margin asks for them also to numbers of rows,
// one more "class".
template <bool with_rows>
SPINNEY_INLINE void count_cells(const LaneCells* cells, const Row* rows, Row n,
                                const std::uint32_t* packed, std::size_t n_cells,
                                std::size_t width, std::uint32_t* counts) {
  const std::size_t lane_size = n_cells * width;
  for (Row i = 0; i < n; ++i) {
    const std::uint32_t row = packed[rows[i]];
    const std::uint32_t label = row & 0xffff;
    const std::uint32_t weight = row >> 16;
    std::uint32_t* const base = counts + label;
    for (std::size_t l = 0; l < n_lanes; ++l) {
      base[l * lane_size + cells[i].lane[l] * width] += weight;
    }
    if constexpr (with_rows) {
      std::uint32_t* const n_rows = counts + width - 1;
      for (std::size_t l = 0; l < n_lanes; ++l) {
        n_rows[l * lane_size + cells[i].lane[l] * width] += 1;
      }
    }
  }
}

SPINNEY_KERNEL void count_cells_plain(const LaneCells* cells, const Row* rows, Row n,
                                      const std::uint32_t* packed, std::size_t n_cells,
                                      std::size_t width, std::uint32_t* counts) {
  count_cells<false>(cells, rows, n, packed, n_cells, width, counts);
}

SPINNEY_KERNEL void sum_masked(const Row* rows, Row n, const LaneKeys* masks,
                               const std::uint32_t* packed, LaneKeys* counts, LaneKeys& n_rows) {
  LaneKeys n_left{};
  for (Row i = 0; i < n; ++i) {
    const std::uint32_t row = packed[rows[i]];
    LaneKeys& count = counts[row & 0xffff];
    const std::uint32_t weight = row >> 16;
    for (std::size_t l = 0; l < n_lanes; ++l) {
      count.lane[l] += masks[i].lane[l] & weight;
      n_left.lane[l] -= masks[i].lane[l];
    }
  }
  n_rows = n_left;
}

}  // namespace

void sum_class_lanes(std::uint32_t n_classes, const Row* rows, Row n, const LaneKeys* masks,
                     const std::uint32_t* packed, double* stats, Row* n_rows) {
  LaneKeys counts[max_lane_classes];
  std::fill(counts, counts + n_classes, LaneKeys{});
  LaneKeys n_left;
  sum_masked(rows, n, masks, packed, counts, n_left);
  for (std::size_t l = 0; l < n_lanes; ++l) {
    double* const stat = stats + l * (1 + n_classes);
    stat[0] = 0;
    for (std::uint32_t k = 0; k < n_classes; ++k) {
      stat[1 + k] = static_cast<double>(counts[k].lane[l]);
      stat[0] += stat[1 + k];
    }
    n_rows[l] = n_left.lane[l];
  }
}

void scan_gini_lanes(const ClassLanes& node, const LaneKeys* keys, Row n, const LaneRows& rows,
                     LaneBest& best) {
  if (n < 2 * node.margin) return;
  if (node.n_classes == 2) {
    scan_two(node, keys, n, rows, best);
  } else {
    scan_many(node, keys, n, rows, best);
  }
}

void scan_gini_cells(const ClassLanes& node, const LaneCells* cells, const Row* rows, Row n,
                     const std::uint32_t* packed, std::size_t n_cells,
                     std::vector<std::uint32_t>& counts, LaneBest& best) {
  const bool with_rows = node.margin > 1;
  const std::size_t n_classes = node.n_classes;
  const std::size_t width = n_classes + (with_rows ? 1 : 0);
  counts.assign(n_lanes * n_cells * width, 0);
  if (with_rows) {
    count_cells<true>(cells, rows, n, packed, n_cells, width, counts.data());
  } else {
    count_cells_plain(cells, rows, n, packed, n_cells, width, counts.data());
  }
  std::int64_t left[max_lane_classes];
  std::int64_t totals[max_lane_classes];
  std::int64_t squares_of_total = 0;
  for (std::size_t k = 0; k < n_classes; ++k) {
    totals[k] = static_cast<std::int64_t>(node.stat[1 + k]);
    squares_of_total += totals[k] * totals[k];
  }
  const auto total = static_cast<std::int64_t>(node.stat[0]);
  const bool two = n_classes == 2;
  for (std::size_t l = 0; l < n_lanes; ++l) {
    std::fill(left, left + n_classes, 0);
    std::int64_t weight = 0;
    std::int64_t squares = 0;
    std::int64_t right_squares = squares_of_total;
    Row n_left = 0;
    const std::uint32_t* cell = counts.data() + l * n_cells * width;
    for (std::size_t c = 0; c + 1 < n_cells; ++c, cell += width) {
      std::int64_t moved = 0;
      for (std::size_t k = 0; k < n_classes; ++k) {
        const std::int64_t w = cell[k];
        squares += w * (2 * left[k] + w);
        right_squares -= w * (2 * (totals[k] - left[k]) - w);
        left[k] += w;
        moved += w;
      }
      if (with_rows) n_left += cell[width - 1];
      if (moved == 0) continue;
      weight += moved;
      if (weight == total) break;
      if (with_rows && (n_left < node.margin || n - n_left < node.margin)) continue;
      // Two classes are scored by their mixing, as everywhere: Σ of squares = w² − 2·ones·zeros.
      const std::int64_t right = total - weight;
      const std::int64_t a = two ? -left[1] * left[0] : squares;
      const std::int64_t b = two ? -(totals[1] - left[1]) * (totals[0] - left[0]) : right_squares;
      const double score = static_cast<double>(a) * (1.0 / static_cast<double>(weight)) +
                           static_cast<double>(b) * (1.0 / static_cast<double>(right));
      if (score > best.score[l]) {
        best.score[l] = score;
        best.at[l] = static_cast<std::uint32_t>(c);
      }
    }
  }
}

}  // namespace spinney
