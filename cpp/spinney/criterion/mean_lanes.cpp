#include "spinney/criterion/mean_lanes.h"

#include "spinney/common/dispatch.h"

namespace spinney::criterion {

using common::dispatch;
using common::Doubles8;
using common::Longs8;
using common::Row;

namespace {

// Not a kernel: its loads are scattered, and wider instruction sets make it slower.
template <std::size_t width>
void scan_integers(const double* stat, const LaneTask& task, const LaneKeys* keys, LaneBest& out) {
  const double* const reciprocals = small_reciprocals();
  const auto total = static_cast<std::int32_t>(stat[0]);
  std::int32_t weights[max_lane_rows];
  double targets[max_lane_rows];
  for (Row i = 0; i < task.rows.n; ++i) {
    const MeanTarget row = task.rows.means[i];
    weights[i] = static_cast<std::int32_t>(row.w);
    targets[i] = row.w * row.y;
  }
  alignas(64) double sum[n_lanes] = {};
  alignas(64) std::int32_t left[n_lanes] = {};
  LaneBest best = out;
  const Row last = task.rows.n - task.margin;
  for (Row i = 0; i < last; ++i) {
    alignas(64) double score[n_lanes];
    for (std::size_t l = 0; l < width; ++l) {
      const std::uint32_t position = keys[i].lane[l] & (max_lane_rows - 1);
      left[l] += weights[position];
      sum[l] += targets[position];
      const double apart = stat[0] * sum[l] - static_cast<double>(left[l]) * stat[1];
      score[l] = apart * apart * (reciprocals[left[l]] * reciprocals[total - left[l]]);
    }
    if (i + 1 >= task.margin) keep_better<width>(score, keys[i], keys[i + 1], i, best);
  }
  out = best;
}

template <std::size_t width>
SPINNEY_INLINE void scan_reals(const double* stat, const LaneTask& task, const LaneKeys* keys,
                               LaneBest& out) {
  alignas(64) double sum[n_lanes] = {};
  alignas(64) double left[n_lanes] = {};
  const double least = 1e-15 * stat[0];  // a side must weigh more than rounding
  LaneBest best = out;
  const Row last = task.rows.n - task.margin;
  for (Row i = 0; i < last; ++i) {
    alignas(64) double score[n_lanes];
    for (std::size_t l = 0; l < width; ++l) {
      const MeanTarget row = task.rows.means[keys[i].lane[l] & (max_lane_rows - 1)];
      left[l] += row.w;
      sum[l] += row.w * row.y;
      const double right = stat[0] - left[l];
      const double apart = stat[0] * sum[l] - left[l] * stat[1];
      const double cut = apart * apart * ((1.0 / left[l]) * (1.0 / right));
      score[l] = left[l] > least && right > least ? cut : best.score[l];
    }
    if (i + 1 >= task.margin) keep_better<width>(score, keys[i], keys[i + 1], i, best);
  }
  out = best;
}

// stats[3 * lane]: weight, sum and an unused number.
SPINNEY_INLINE void sum_lanes_kernel(const LaneTask& task, const LaneValues* values,
                                     const LaneValues& cut, double* stats, Row* n_rows) {
  const auto limit = common::load<Doubles8>(cut.lane);
  Doubles8 sum{};
  Doubles8 weight{};
  Longs8 count{};
  for (Row i = 0; i < task.rows.n; ++i) {
    const MeanTarget row = task.rows.means[i];
    const Longs8 left = common::load<Doubles8>(values[i].lane) <= limit;
    sum += common::keep(left, common::broadcast<Doubles8>(row.w * row.y));
    weight += common::keep(left, common::broadcast<Doubles8>(row.w));
    count -= left;
  }
  for (std::size_t l = 0; l < n_lanes; ++l) {
    stats[3 * l] = weight[l];
    stats[3 * l + 1] = sum[l];
    stats[3 * l + 2] = 0;
    n_rows[l] = static_cast<Row>(count[l]);
  }
}

}  // namespace

void scan_mean_lanes(const double* stat, bool integral, const LaneTask& task, const LaneKeys* keys,
                     LaneBest& best) {
  if (task.rows.n < 2 * task.margin) return;
  with_lanes(task.n_used, [&](auto width) {
    if (integral && stat[0] <= max_lane_weight) {
      scan_integers<width()>(stat, task, keys, best);
    } else {
      dispatch<scan_reals<width()>>(stat, task, keys, best);
    }
  });
}

CellCut scan_mean_cells(const double* stat, const CellTask& task, std::vector<MeanCell>& cells,
                        std::vector<std::uint32_t>& n_rows) {
  cells.assign(task.n_cells, MeanCell());
  for (Row i = 0; i < task.rows.n; ++i) {
    MeanCell& cell = cells[task.cells[i]];
    cell.sum += task.rows.means[i].w * task.rows.means[i].y;
    cell.weight += task.rows.means[i].w;
  }
  const bool with_rows = task.margin > 1;
  n_rows.assign(with_rows ? task.n_cells : 0, 0);
  for (Row i = 0; with_rows && i < task.rows.n; ++i) ++n_rows[task.cells[i]];
  const double least = 1e-15 * stat[0];
  double left = 0;
  double sum = 0;
  Row n_left = 0;
  CellCut best;
  for (std::size_t c = 0; c + 1 < task.n_cells; ++c) {
    if (!(cells[c].weight > 0)) continue;
    left += cells[c].weight;
    sum += cells[c].sum;
    if (with_rows) n_left += n_rows[c];
    const double right = stat[0] - left;
    if (!(right > least)) break;
    if (with_rows && (n_left < task.margin || task.rows.n - n_left < task.margin)) continue;
    if (!(left > least)) continue;
    const double apart = stat[0] * sum - left * stat[1];
    const double score = apart * apart * ((1.0 / left) * (1.0 / right));
    if (score > best.score) best = {score, static_cast<std::uint32_t>(c)};
  }
  return best;
}

void sum_mean_lanes(const LaneTask& task, const LaneValues* values, const LaneValues& cut,
                    double* stats, Row* n_rows) {
  dispatch<sum_lanes_kernel>(task, values, cut, stats, n_rows);
}

Row sum_means_below(const RowSpan& rows, const double* values, double cut, double* stat) {
  double sum = 0;
  double weight = 0;
  Row n_left = 0;
  for (Row i = 0; i < rows.n; ++i) {
    const bool left = values[i] <= cut;
    sum += left ? rows.means[i].w * rows.means[i].y : 0.0;
    weight += left ? rows.means[i].w : 0.0;
    n_left += left ? 1 : 0;
  }
  stat[0] = weight;
  stat[1] = sum;
  stat[2] = 0;
  return n_left;
}

}  // namespace spinney::criterion
