#include "spinney/criterion/class_lanes.h"

#include <algorithm>

#include "spinney/common/dispatch.h"

namespace spinney::criterion {

using common::dispatch;
using common::Doubles8;
using common::Longs8;
using common::Row;

namespace {

template <std::size_t width>
SPINNEY_INLINE void scan_two(const double* stat, const LaneTask& task, const LaneKeys* keys,
                             LaneBest& out) {
  const double* const reciprocals = small_reciprocals();
  const std::uint32_t* const packed = task.rows.packed;
  const auto total = static_cast<std::int32_t>(stat[0]);
  const auto ones = static_cast<std::int32_t>(stat[2]);
  alignas(64) std::int32_t left[n_lanes] = {};
  alignas(64) std::int32_t left_ones[n_lanes] = {};
  LaneBest best = out;
  const Row last = task.rows.n - task.margin;
  for (Row i = 0; i < last; ++i) {
    alignas(64) double score[n_lanes];
    for (std::size_t l = 0; l < width; ++l) {
      const std::uint32_t row = packed[keys[i].lane[l] & (max_lane_rows - 1)];
      const auto w = static_cast<std::int32_t>(weight_of(row));
      left[l] += w;
      left_ones[l] += static_cast<std::int32_t>(label_of(row)) * w;
      const std::int32_t right = total - left[l];
      const std::int32_t right_ones = ones - left_ones[l];
      const auto left_mix = static_cast<double>(left_ones[l] * (left[l] - left_ones[l]));
      const auto right_mix = static_cast<double>(right_ones * (right - right_ones));
      score[l] = -(left_mix * reciprocals[left[l]] + right_mix * reciprocals[right]);
    }
    if (i + 1 >= task.margin) keep_better<width>(score, keys[i], keys[i + 1], i, best);
  }
  out = best;
}

template <std::size_t width>
SPINNEY_INLINE void scan_many(std::uint32_t n_classes, const double* stat, const LaneTask& task,
                              const LaneKeys* keys, LaneBest& out) {
  const double* const reciprocals = small_reciprocals();
  const std::uint32_t* const packed = task.rows.packed;
  std::int32_t twice_total[max_lane_classes];
  std::int32_t left_counts[max_lane_classes * n_lanes];
  std::int32_t squares_of_total = 0;
  const auto total = static_cast<std::int32_t>(stat[0]);
  for (std::uint32_t k = 0; k < n_classes; ++k) {
    const auto count = static_cast<std::int32_t>(stat[1 + k]);
    twice_total[k] = 2 * count;
    squares_of_total += count * count;
  }
  std::fill(left_counts, left_counts + n_classes * n_lanes, 0);
  alignas(64) std::int32_t left[n_lanes] = {};
  alignas(64) std::int32_t squares[n_lanes] = {};
  alignas(64) std::int32_t offset[n_lanes];
  for (std::size_t l = 0; l < width; ++l) offset[l] = squares_of_total;
  LaneBest best = out;
  const Row last = task.rows.n - task.margin;
  for (Row i = 0; i < last; ++i) {
    alignas(64) double score[n_lanes];
    for (std::size_t l = 0; l < width; ++l) {
      const std::uint32_t row = packed[keys[i].lane[l] & (max_lane_rows - 1)];
      const auto w = static_cast<std::int32_t>(weight_of(row));
      const std::uint32_t k = label_of(row);
      std::int32_t& count = left_counts[k * n_lanes + l];
      squares[l] += w * (2 * count + w);
      offset[l] -= w * twice_total[k];
      count += w;
      left[l] += w;
      score[l] = static_cast<double>(squares[l]) * reciprocals[left[l]] +
                 static_cast<double>(squares[l] + offset[l]) * reciprocals[total - left[l]];
    }
    if (i + 1 >= task.margin) keep_better<width>(score, keys[i], keys[i + 1], i, best);
  }
  out = best;
}

// Adds the weights of rows to counts[cell][class]; with_rows adds the number of rows as one more
// class. Consecutive rows often share a counter, and one addition would wait for the previous one.
// Two tables avoid this; the second is added to the first at the end.
void count_cells(const CellTask& task, std::size_t width, std::uint32_t* counts) {
  const std::size_t size = task.n_cells * width;
  std::uint32_t* const second = counts + size;
  const std::uint32_t* const packed = task.rows.packed;
  const Row n = task.rows.n;
  Row i = 0;
  for (; i + 1 < n; i += 2) {
    counts[task.cells[i] * width + label_of(packed[i])] += weight_of(packed[i]);
    second[task.cells[i + 1] * width + label_of(packed[i + 1])] += weight_of(packed[i + 1]);
  }
  for (; i < n; ++i) counts[task.cells[i] * width + label_of(packed[i])] += weight_of(packed[i]);
  if (task.margin > 1) {
    for (i = 0; i < n; ++i) ++counts[task.cells[i] * width + width - 1];
  }
  for (std::size_t k = 0; k < size; ++k) counts[k] += second[k];
}

SPINNEY_INLINE void sum_lanes_kernel(const RowSpan& rows, const LaneValues* values,
                                     const LaneValues& cut, LaneValues* counts,
                                     LaneValues& n_rows) {
  const auto limit = common::load<Doubles8>(cut.lane);
  Longs8 n_left{};
  for (Row i = 0; i < rows.n; ++i) {
    const std::uint32_t row = rows.packed[i];
    const auto weight = common::broadcast<Doubles8>(static_cast<double>(weight_of(row)));
    const Longs8 left = common::load<Doubles8>(values[i].lane) <= limit;
    double* const count = counts[label_of(row)].lane;
    common::store(count, common::load<Doubles8>(count) + common::keep(left, weight));
    n_left -= left;
  }
  common::store(n_rows.lane, common::convert<Doubles8>(n_left));
}

void fill_stat(std::uint32_t n_classes, const std::uint64_t* counts, double* stat) {
  stat[0] = 0;
  for (std::uint32_t k = 0; k < n_classes; ++k) {
    stat[1 + k] = static_cast<double>(counts[k]);
    stat[0] += stat[1 + k];
  }
}

}  // namespace

void scan_gini_lanes(std::uint32_t n_classes, const double* stat, const LaneTask& task,
                     const LaneKeys* keys, LaneBest& best) {
  if (task.rows.n < 2 * task.margin) return;
  with_lanes(task.n_used, [&](auto width) {
    if (n_classes == 2) {
      dispatch<scan_two<width()>>(stat, task, keys, best);
    } else {
      dispatch<scan_many<width()>>(n_classes, stat, task, keys, best);
    }
  });
}

CellCut scan_gini_cells(std::uint32_t n_classes, const double* stat, const CellTask& task,
                        std::vector<std::uint32_t>& counts) {
  const bool with_rows = task.margin > 1;
  const std::size_t width = n_classes + (with_rows ? 1U : 0U);
  counts.assign(2 * task.n_cells * width, 0);
  count_cells(task, width, counts.data());
  std::int64_t left[max_lane_classes] = {};
  std::int64_t totals[max_lane_classes];
  std::int64_t right_squares = 0;
  for (std::size_t k = 0; k < n_classes; ++k) {
    totals[k] = static_cast<std::int64_t>(stat[1 + k]);
    right_squares += totals[k] * totals[k];
  }
  const auto total = static_cast<std::int64_t>(stat[0]);
  std::int64_t weight = 0;
  std::int64_t squares = 0;
  Row n_left = 0;
  CellCut best;
  const std::uint32_t* cell = counts.data();
  for (std::size_t c = 0; c + 1 < task.n_cells; ++c, cell += width) {
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
    if (with_rows && (n_left < task.margin || task.rows.n - n_left < task.margin)) continue;
    // Two classes, as in BinaryGini: Σ of squares = w² − 2·ones·zeros.
    const bool two = n_classes == 2;
    const std::int64_t right = total - weight;
    const std::int64_t a = two ? -left[1] * left[0] : squares;
    const std::int64_t b = two ? -(totals[1] - left[1]) * (totals[0] - left[0]) : right_squares;
    const double score = static_cast<double>(a) * (1.0 / static_cast<double>(weight)) +
                         static_cast<double>(b) * (1.0 / static_cast<double>(right));
    if (score > best.score) best = {score, static_cast<std::uint32_t>(c)};
  }
  return best;
}

void sum_class_lanes(std::uint32_t n_classes, const LaneTask& task, const LaneValues* values,
                     const LaneValues& cut, double* stats, Row* n_rows) {
  LaneValues counts[max_lane_classes];
  std::fill(counts, counts + n_classes, LaneValues{});
  LaneValues n_left;
  dispatch<sum_lanes_kernel>(task.rows, values, cut, counts, n_left);
  for (std::size_t l = 0; l < task.n_used; ++l) {
    double* const stat = stats + l * (1 + n_classes);
    stat[0] = 0;
    for (std::uint32_t k = 0; k < n_classes; ++k) {
      stat[1 + k] = counts[k].lane[l];
      stat[0] += stat[1 + k];
    }
    n_rows[l] = static_cast<Row>(n_left.lane[l]);
  }
}

Row sum_classes_below(std::uint32_t n_classes, const RowSpan& rows, const double* values,
                      double cut, double* stat) {
  // Four separate tables, so that no addition waits for the previous one.
  std::uint64_t counts[4 * max_lane_classes] = {};
  std::uint64_t* const second = counts + 2 * max_lane_classes;
  Row n_left = 0;
  const auto add = [&](Row i, std::uint64_t* to) {
    const std::uint32_t row = rows.packed[i];
    const std::uint32_t right = values[i] <= cut ? 0 : 1;
    to[right * max_lane_classes + label_of(row)] += weight_of(row);
    n_left += 1 - right;
  };
  Row i = 0;
  for (; i + 1 < rows.n; i += 2) {
    add(i, counts);
    add(i + 1, second);
  }
  for (; i < rows.n; ++i) add(i, counts);
  for (std::uint32_t k = 0; k < n_classes; ++k) counts[k] += second[k];
  fill_stat(n_classes, counts, stat);
  return n_left;
}

void sum_classes(std::uint32_t n_classes, const RowSpan& rows, double* stat) {
  std::uint64_t counts[2 * max_lane_classes] = {};
  std::uint64_t* const second = counts + max_lane_classes;
  Row i = 0;
  for (; i + 1 < rows.n; i += 2) {
    counts[label_of(rows.packed[i])] += weight_of(rows.packed[i]);
    second[label_of(rows.packed[i + 1])] += weight_of(rows.packed[i + 1]);
  }
  for (; i < rows.n; ++i) counts[label_of(rows.packed[i])] += weight_of(rows.packed[i]);
  for (std::uint32_t k = 0; k < n_classes; ++k) counts[k] += second[k];
  fill_stat(n_classes, counts, stat);
}

}  // namespace spinney::criterion
