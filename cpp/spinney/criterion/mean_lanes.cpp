#include "spinney/criterion/mean_lanes.h"

namespace spinney {
namespace {

SPINNEY_KERNEL void scan_integers(const MeanLanes& node, const LaneKeys* keys, Row n,
                                  const LaneRows& rows, LaneBest& out) {
  const auto total = static_cast<std::int32_t>(node.weight);
  alignas(64) double sum[n_lanes] = {};
  alignas(64) std::int32_t left[n_lanes] = {};
  LaneBest best = out;
  const Row last = n - node.margin;
  for (Row i = 0; i < last; ++i) {
    alignas(64) double score[n_lanes];
    for (std::size_t l = 0; l < n_lanes; ++l) {
      const std::uint32_t position = keys[i].lane[l] & (max_lane_rows - 1);
      left[l] += rows.weight[position];
      sum[l] += rows.target[position];
      const double apart = node.weight * sum[l] - static_cast<double>(left[l]) * node.sum;
      score[l] =
          apart * apart * (node.reciprocals[left[l]] * node.reciprocals[total - left[l]]);
    }
    if (i + 1 >= node.margin) keep_better(score, keys[i], keys[i + 1], i, best);
  }
  out = best;
}

SPINNEY_KERNEL void scan_reals(const MeanLanes& node, const LaneKeys* keys, Row n,
                               const LaneRows& rows, LaneBest& out) {
  alignas(64) double sum[n_lanes] = {};
  alignas(64) double left[n_lanes] = {};
  const double least = 1e-15 * node.weight;  // a weight lost in rounding is no side
  LaneBest best = out;
  const Row last = n - node.margin;
  for (Row i = 0; i < last; ++i) {
    alignas(64) double score[n_lanes];
    for (std::size_t l = 0; l < n_lanes; ++l) {
      const std::uint32_t position = keys[i].lane[l] & (max_lane_rows - 1);
      left[l] += rows.real_weight[position];
      sum[l] += rows.target[position];
      const double right = node.weight - left[l];
      const double apart = node.weight * sum[l] - left[l] * node.sum;
      const double cut = apart * apart * ((1.0 / left[l]) * (1.0 / right));
      score[l] = left[l] > least && right > least ? cut : best.score[l];
    }
    if (i + 1 >= node.margin) keep_better(score, keys[i], keys[i + 1], i, best);
  }
  out = best;
}

template <bool is_weighted>
SPINNEY_INLINE void sum_cells(const LaneCells* cells, const Row* rows, Row n,
                              const WeightedTarget* weighted, const double* values,
                              std::size_t n_cells, MeanCell* sums) {
  for (Row i = 0; i < n; ++i) {
    WeightedTarget row{0, 1.0};
    if constexpr (is_weighted) {
      row = weighted[rows[i]];
    } else {
      row.wy = values[rows[i]];
    }
    for (std::size_t l = 0; l < n_lanes; ++l) {
      MeanCell& cell = sums[l * n_cells + cells[i].lane[l]];
      cell.sum += row.wy;
      cell.weight += row.w;
    }
  }
}

template <bool is_weighted>
SPINNEY_INLINE void sum_masked(const Row* rows, Row n, const LaneKeys* masks,
                               const WeightedTarget* weighted, const double* values, double* stats,
                               Row* n_rows) {
  alignas(64) double sums[n_lanes] = {};
  alignas(64) double weights[n_lanes] = {};
  LaneKeys n_left{};
  for (Row i = 0; i < n; ++i) {
    WeightedTarget row{0, 1.0};
    if constexpr (is_weighted) {
      row = weighted[rows[i]];
    } else {
      row.wy = values[rows[i]];
    }
    for (std::size_t l = 0; l < n_lanes; ++l) {
      const bool left = masks[i].lane[l] != 0;
      sums[l] += left ? row.wy : 0.0;
      weights[l] += left ? row.w : 0.0;
      n_left.lane[l] += left ? 1 : 0;
    }
  }
  for (std::size_t l = 0; l < n_lanes; ++l) {
    stats[3 * l] = weights[l];
    stats[3 * l + 1] = sums[l];
    stats[3 * l + 2] = 0;
    n_rows[l] = n_left.lane[l];
  }
}

SPINNEY_KERNEL void sum_weighted(const Row* rows, Row n, const LaneKeys* masks,
                                 const WeightedTarget* weighted, double* stats, Row* n_rows) {
  sum_masked<true>(rows, n, masks, weighted, nullptr, stats, n_rows);
}

SPINNEY_KERNEL void sum_plain(const Row* rows, Row n, const LaneKeys* masks, const double* values,
                              double* stats, Row* n_rows) {
  sum_masked<false>(rows, n, masks, nullptr, values, stats, n_rows);
}

}  // namespace

void sum_mean_lanes(const Row* rows, Row n, const LaneKeys* masks, const WeightedTarget* weighted,
                    const double* values, double* stats, Row* n_rows) {
  if (weighted != nullptr) {
    sum_weighted(rows, n, masks, weighted, stats, n_rows);
  } else {
    sum_plain(rows, n, masks, values, stats, n_rows);
  }
}

void scan_mean_lanes(const MeanLanes& node, const LaneKeys* keys, Row n, const LaneRows& rows,
                     LaneBest& best) {
  if (n < 2 * node.margin) return;
  if (node.reciprocals != nullptr) {
    scan_integers(node, keys, n, rows, best);
  } else {
    scan_reals(node, keys, n, rows, best);
  }
}

void scan_mean_cells(const MeanLanes& node, const LaneCells* cells, const Row* rows, Row n,
                     const WeightedTarget* weighted, const double* values, std::size_t n_cells,
                     std::vector<MeanCell>& scratch, std::vector<std::uint32_t>& n_rows,
                     LaneBest& best) {
  scratch.assign(n_lanes * n_cells, MeanCell());
  if (weighted != nullptr) {
    sum_cells<true>(cells, rows, n, weighted, values, n_cells, scratch.data());
  } else {
    sum_cells<false>(cells, rows, n, weighted, values, n_cells, scratch.data());
  }
  n_rows.assign(n_lanes * n_cells, 0);
  for (Row i = 0; i < n; ++i) {
    for (std::size_t l = 0; l < n_lanes; ++l) ++n_rows[l * n_cells + cells[i].lane[l]];
  }
  const double least = 1e-15 * node.weight;
  for (std::size_t l = 0; l < n_lanes; ++l) {
    double left = 0;
    double sum = 0;
    Row n_left = 0;
    for (std::size_t c = 0; c + 1 < n_cells; ++c) {
      const MeanCell& cell = scratch[l * n_cells + c];
      const Row moved = n_rows[l * n_cells + c];
      if (moved == 0) continue;
      n_left += moved;
      left += cell.weight;
      sum += cell.sum;
      if (n_left == n) break;
      const double right = node.weight - left;
      if (n_left < node.margin || n - n_left < node.margin) continue;
      if (!(left > least && right > least)) continue;
      const double apart = node.weight * sum - left * node.sum;
      const double score = apart * apart * ((1.0 / left) * (1.0 / right));
      if (score > best.score[l]) {
        best.score[l] = score;
        best.at[l] = static_cast<std::uint32_t>(c);
      }
    }
  }
}

}  // namespace spinney
