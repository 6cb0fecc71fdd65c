#include "spinney/criterion/lanes.h"

#include <algorithm>
#include <vector>

#include "spinney/common/random.h"
#include "spinney/criterion/class_lanes.h"
#include "spinney/criterion/mean_lanes.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::criterion;
using common::Row;

namespace {

struct Rows {
  std::vector<Row> rows;
  std::vector<std::uint32_t> packed;
  std::vector<MeanTarget> means;
  std::vector<LaneKeys> keys;

  Rows(Row n, std::uint32_t n_classes, std::uint64_t n_codes, std::uint64_t seed) {
    common::Stream stream(seed, common::Purpose::rows, n);
    keys.resize(n);
    for (Row i = 0; i < n; ++i) {
      rows.push_back(i);
      const auto weight = static_cast<std::uint32_t>(1 + stream.below(3));
      packed.push_back((weight << 16) | static_cast<std::uint32_t>(stream.below(n_classes)));
      means.push_back({static_cast<double>(stream.below(100)), static_cast<double>(weight)});
      for (std::size_t l = 0; l < n_lanes; ++l) {
        keys[i].lane[l] = static_cast<std::uint32_t>(stream.below(n_codes) << 8) | i;
      }
    }
  }
  RowSpan span() const {
    return {rows.data(), packed.data(), means.data(), static_cast<Row>(rows.size())};
  }
};

// Score of the cut after position `at` of a sorted lane, from the definition.
double gini_score(const Rows& data, std::size_t lane, Row at, std::uint32_t n_classes) {
  std::vector<double> counts(2 * n_classes);
  double weight[2] = {0, 0};
  for (Row i = 0; i < data.keys.size(); ++i) {
    const std::uint32_t row = data.packed[data.keys[i].lane[lane] & 255];
    const std::size_t side = i <= at ? 0 : 1;
    counts[side * n_classes + label_of(row)] += weight_of(row);
    weight[side] += weight_of(row);
  }
  double score = 0;
  for (std::size_t side = 0; side < 2; ++side) {
    double squares = 0;
    for (std::uint32_t k = 0; k < n_classes; ++k) {
      squares += counts[side * n_classes + k] * counts[side * n_classes + k];
    }
    // Two classes are scored by −ones·zeros/weight, which differs by half of the weight.
    score += n_classes == 2 ? (squares / weight[side] - weight[side]) / 2 : squares / weight[side];
  }
  return score;
}

}  // namespace

TEST(lanes_are_sorted) {
  for (const Row n : {1U, 2U, 3U, 5U, 16U, 17U, 100U, 255U, 256U}) {
    Rows data(n, 2, 50, n);
    std::vector<std::vector<std::uint32_t>> expected(n_lanes);
    for (std::size_t l = 0; l < n_lanes; ++l) {
      for (const LaneKeys& key : data.keys) expected[l].push_back(key.lane[l]);
      std::sort(expected[l].begin(), expected[l].end());
    }
    sort_lanes(data.keys.data(), n);
    for (Row i = 0; i < n; ++i) {
      for (std::size_t l = 0; l < n_lanes; ++l) CHECK(data.keys[i].lane[l] == expected[l][i]);
    }
  }
}

TEST(gini_lanes_find_the_best_cut) {
  for (const std::uint32_t n_classes : {2U, 3U, 7U}) {
    for (const std::size_t n_used : {1U, 2U, 4U, 7U, 8U}) {
      for (const Row n : {2U, 9U, 60U, 256U}) {
        Rows data(n, n_classes, 20, n + n_used);
        sort_lanes(data.keys.data(), n);
        std::vector<double> stat(1 + n_classes);
        sum_classes(n_classes, data.span(), stat.data());
        const LaneTask task{data.span(), n_used, 2};
        LaneBest best;
        best.clear();
        scan_gini_lanes(n_classes, stat.data(), task, data.keys.data(), best);
        for (std::size_t l = 0; l < n_used; ++l) {
          double expected = -1e300;
          for (Row at = 1; at + 2 < n; ++at) {  // two rows on each side
            if (data.keys[at].lane[l] >> 8 == data.keys[at + 1].lane[l] >> 8) continue;
            expected = std::max(expected, gini_score(data, l, at, n_classes));
          }
          if (expected == -1e300) {
            CHECK(best.at[l] == LaneBest::none);
          } else {
            CHECK_NEAR(best.score[l], expected, 1e-9);
            CHECK_NEAR(gini_score(data, l, best.at[l], n_classes), expected, 1e-9);
          }
        }
      }
    }
  }
}

TEST(mean_lanes_agree_for_integer_and_real_weights) {
  Rows data(120, 2, 30, 3);
  sort_lanes(data.keys.data(), 120);
  double stat[3] = {0, 0, 0};
  for (const MeanTarget& row : data.means) {
    stat[0] += row.w;
    stat[1] += row.w * row.y;
  }
  const LaneTask task{data.span(), n_lanes, 1};
  LaneBest integers;
  LaneBest reals;
  integers.clear();
  reals.clear();
  scan_mean_lanes(stat, true, task, data.keys.data(), integers);
  scan_mean_lanes(stat, false, task, data.keys.data(), reals);
  for (std::size_t l = 0; l < n_lanes; ++l) {
    CHECK(integers.at[l] == reals.at[l]);
    CHECK(integers.score[l] == reals.score[l]);
    // The score is w times the decrease of the sum of squares.
    double left = 0;
    double sum = 0;
    for (Row i = 0; i <= integers.at[l]; ++i) {
      const MeanTarget& row = data.means[data.keys[i].lane[l] & 255];
      left += row.w;
      sum += row.w * row.y;
    }
    const double right = stat[0] - left;
    const double decrease =
        sum * sum / left + (stat[1] - sum) * (stat[1] - sum) / right - stat[1] * stat[1] / stat[0];
    CHECK_NEAR(integers.score[l] / stat[0], decrease, 1e-6 * decrease);
  }
}

TEST(cells_and_lanes_agree_if_each_cell_is_one_value) {
  for (const std::uint32_t n_classes : {2U, 5U}) {
    Rows data(200, n_classes, 12, 8);
    std::vector<std::uint8_t> cells;
    for (const LaneKeys& key : data.keys)
      cells.push_back(static_cast<std::uint8_t>(key.lane[0] >> 8));
    std::vector<double> stat(1 + n_classes);
    sum_classes(n_classes, data.span(), stat.data());
    std::vector<std::uint32_t> counts;
    for (const Row margin : {1U, 30U}) {
      const CellCut cut = scan_gini_cells(n_classes, stat.data(),
                                          CellTask{data.span(), cells.data(), 12, margin}, counts);
      Rows sorted = data;
      sort_lanes(sorted.keys.data(), 200);
      LaneBest best;
      best.clear();
      scan_gini_lanes(n_classes, stat.data(), LaneTask{data.span(), 1, margin}, sorted.keys.data(),
                      best);
      CHECK_NEAR(cut.score, best.score[0], 1e-9);
      CHECK(cut.at == sorted.keys[best.at[0]].lane[0] >> 8);
    }
  }
}
