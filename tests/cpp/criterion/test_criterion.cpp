// Compares each criterion's scan with its scores of all possible splits.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "spinney/common/random.h"
#include "spinney/criterion/criterion.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::criterion;
using common::Row;

namespace {

struct Problem {
  std::size_t n;
  std::vector<double> x;
  std::vector<std::uint32_t> labels;
  std::vector<double> y;
  std::vector<double> weights;
};

Problem draw(common::Stream& stream, std::uint32_t n_classes, bool missing) {
  Problem p{2 + stream.below(30), {}, {}, {}, {}};
  for (std::size_t i = 0; i < p.n; ++i) {
    p.x.push_back(missing && stream.below(4) == 0 ? std::numeric_limits<double>::quiet_NaN()
                                                  : static_cast<double>(stream.below(8)));
    p.labels.push_back(static_cast<std::uint32_t>(stream.below(n_classes)));
    p.y.push_back(static_cast<double>(stream.below(6)) + 0.25);
    p.weights.push_back(static_cast<double>(1 + stream.below(3)));
  }
  return p;
}

// Largest score over all thresholds and directions of missing values, by partitioning the rows.
double best_score(const Criterion& criterion, const Problem& p) {
  std::vector<double> cuts(p.x);
  std::erase_if(cuts, [](double v) { return std::isnan(v); });
  std::sort(cuts.begin(), cuts.end());
  double best = -std::numeric_limits<double>::infinity();
  std::vector<double> left_stat(criterion.stat_size());
  std::vector<double> right_stat(criterion.stat_size());
  for (const double cut : cuts) {
    for (const bool missing_left : {false, true}) {
      std::vector<Row> left;
      std::vector<Row> right;
      for (std::size_t i = 0; i < p.n; ++i) {
        const bool goes_left = std::isnan(p.x[i]) ? missing_left : p.x[i] <= cut;
        (goes_left ? left : right).push_back(static_cast<Row>(i));
      }
      if (left.empty() || right.empty()) continue;
      criterion.sum(left.data(), static_cast<Row>(left.size()), left_stat.data());
      criterion.sum(right.data(), static_cast<Row>(right.size()), right_stat.data());
      best = std::max(best, criterion.score(left_stat.data(), right_stat.data()));
    }
  }
  return best;
}

}  // namespace

TEST(scans_find_the_best_boundary) {
  common::Stream stream(21, common::Purpose::rows, 0);
  for (int round = 0; round < 300; ++round) {
    for (const CriterionKind kind :
         {CriterionKind::gini, CriterionKind::entropy, CriterionKind::misclassification,
          CriterionKind::squared_error, CriterionKind::poisson, CriterionKind::absolute_error}) {
      const auto n_classes = static_cast<std::uint32_t>(2 + stream.below(3));
      const Problem p = draw(stream, n_classes, round % 2 == 0);
      for (const int weighting : {0, 1, 2}) {
        Targets targets;
        targets.n_rows = p.n;
        std::vector<double> weights = p.weights;
        if (weighting == 2) {
          for (double& w : weights) w *= 0.37;
        }
        if (is_classification(kind)) {
          targets.n_classes = {n_classes};
          targets.labels = p.labels.data();
        } else {
          targets.values = p.y.data();
        }
        targets.weights = weighting == 0 ? nullptr : weights.data();
        targets.integral_weights = weighting == 1;
        const table::EntryLayout layout =
            table::EntryLayout::make(p.n, targets.n_classes.empty() ? 0 : n_classes);
        const auto criterion = make_criterion(kind, targets, layout);

        table::Table table;
        table.n_rows = p.n;
        table::Column column;
        column.data = reinterpret_cast<const std::byte*>(p.x.data());
        column.stride = sizeof(double);
        table.columns = {column};
        std::vector<Row> rows(p.n);
        std::iota(rows.begin(), rows.end(), 0U);
        const table::CodingRows sample{rows.data(), static_cast<Row>(p.n),
                                       layout.label_bits > 0 ? p.labels.data() : nullptr};
        const auto coded = table::code_table(table, sample, layout, criterion->is_additive(), 1);

        std::vector<double> stat(criterion->stat_size());
        criterion->sum(rows.data(), static_cast<Row>(p.n), stat.data());
        ScanRequest request;
        request.node = {static_cast<Row>(p.n), stat.data()};
        request.column = &coded[0];
        request.entries = coded[0].entries.get();
        request.n_entries = coded[0].n_entries;
        NodeScratch node_scratch;
        ScanScratch scratch;
        criterion->prepare(rows.data(), static_cast<Row>(p.n), node_scratch);
        Split split;
        if (request.n_entries > 0) criterion->scan(request, node_scratch, scratch, split);

        const double expected = best_score(*criterion, p);
        CHECK(split.found() == std::isfinite(expected));
        if (!split.found()) continue;
        // Partition the rows by the found split and compare its score.
        std::vector<Row> left;
        std::vector<Row> right;
        const auto value = [&](Row row) {
          return row == implicit_row ? coded[0].implicit_value : p.x[row];
        };
        const double cut =
            split.only_missing_right ? std::numeric_limits<double>::infinity() : value(split.below);
        for (std::size_t i = 0; i < p.n; ++i) {
          const bool goes_left = std::isnan(p.x[i]) ? split.missing_left : p.x[i] <= cut;
          (goes_left ? left : right).push_back(static_cast<Row>(i));
        }
        CHECK(left.size() == split.n_left);
        std::vector<double> left_stat(criterion->stat_size());
        std::vector<double> right_stat(criterion->stat_size());
        criterion->sum(left.data(), static_cast<Row>(left.size()), left_stat.data());
        criterion->sum(right.data(), static_cast<Row>(right.size()), right_stat.data());
        const double reached = criterion->score(left_stat.data(), right_stat.data());
        CHECK_NEAR(reached, expected, 1e-9 * (1 + std::abs(expected)));
      }
    }
  }
}
