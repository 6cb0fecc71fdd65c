// Compares statistics, impurities, values and scores of all criteria with their definitions.
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

Targets class_targets(const std::vector<std::uint32_t>& labels,
                      std::vector<std::uint32_t> n_classes, const std::vector<double>& weights = {},
                      bool integral = false) {
  Targets targets;
  targets.n_outputs = n_classes.size();
  targets.n_rows = labels.size() / targets.n_outputs;
  targets.n_classes = std::move(n_classes);
  targets.labels = labels.data();
  targets.weights = weights.empty() ? nullptr : weights.data();
  targets.integral_weights = integral;
  return targets;
}

Targets real_targets(const std::vector<double>& values, std::size_t n_outputs = 1,
                     const std::vector<double>& weights = {}, bool integral = false) {
  Targets targets;
  targets.n_outputs = n_outputs;
  targets.n_rows = values.size() / n_outputs;
  targets.values = values.data();
  targets.weights = weights.empty() ? nullptr : weights.data();
  targets.integral_weights = integral;
  return targets;
}

struct Measured {
  double weight;
  double impurity;
  std::vector<double> value;
  double bounded_value;
};

Measured measure(CriterionKind kind, const Targets& targets, std::vector<Row> rows = {}) {
  const auto criterion = make_criterion(kind, targets, table::EntryLayout{});
  if (rows.empty()) {
    rows.resize(targets.n_rows);
    std::iota(rows.begin(), rows.end(), Row{0});
  }
  std::vector<double> stat(criterion->stat_size());
  criterion->sum(rows.data(), static_cast<Row>(rows.size()), stat.data());
  std::uint32_t width = 1;
  for (const std::uint32_t k : targets.n_classes) width = std::max(width, k);
  Measured out{stat[0], criterion->impurity(stat.data()),
               std::vector<double>(width * targets.n_outputs),
               criterion->bounded_value(stat.data())};
  criterion->value(stat.data(), out.value.data());
  return out;
}

void check_values(const std::vector<double>& values, const std::vector<double>& expected) {
  CHECK(values.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK_NEAR(values[i], expected[i], 1e-12);
}

}  // namespace

TEST(classification_criteria_match_their_formulas) {
  const std::vector<std::uint32_t> labels{0, 0, 1, 1, 1, 2};
  const Targets targets = class_targets(labels, {3});
  const double entropy =
      std::log2(3.0) / 3 + std::log2(2.0) / 2 + std::log2(6.0) / 6;  // Σ p log2(1/p)
  CHECK_NEAR(measure(CriterionKind::gini, targets).impurity, 22.0 / 36, 1e-15);
  CHECK_NEAR(measure(CriterionKind::entropy, targets).impurity, entropy, 1e-12);
  CHECK_NEAR(measure(CriterionKind::misclassification, targets).impurity, 0.5, 1e-15);
  const Measured all = measure(CriterionKind::gini, targets);
  CHECK(all.weight == 6);
  check_values(all.value, {1.0 / 3, 0.5, 1.0 / 6});
  CHECK_NEAR(all.bounded_value, 1.0 / 3, 1e-15);
  const Measured pure = measure(CriterionKind::gini, targets, {2, 3, 4});
  CHECK(pure.impurity == 0);
  check_values(pure.value, {0, 1, 0});
}

TEST(class_weights_are_sums_of_row_weights) {
  const std::vector<std::uint32_t> labels{0, 1, 1};
  const std::vector<double> integers{3, 1, 0};
  const std::vector<double> reals{0.75, 0.125, 0.125};
  for (const CriterionKind kind : {CriterionKind::gini, CriterionKind::misclassification}) {
    const double expected = kind == CriterionKind::gini ? 0.375 : 0.25;
    const Measured a = measure(kind, class_targets(labels, {2}, integers, true));
    const Measured b = measure(kind, class_targets(labels, {2}, reals));
    CHECK(a.weight == 4 && b.weight == 1);
    CHECK_NEAR(a.impurity, expected, 1e-15);
    CHECK_NEAR(b.impurity, expected, 1e-15);
    check_values(a.value, {0.75, 0.25});
    check_values(b.value, {0.75, 0.25});
  }
}

TEST(outputs_are_averaged) {
  // Output 0: two classes, 1:3. Output 1: three classes, 2:1:1.
  const std::vector<std::uint32_t> labels{0, 1, 1, 1, 0, 0, 1, 2};
  const Measured classes = measure(CriterionKind::gini, class_targets(labels, {2, 3}));
  CHECK_NEAR(classes.impurity, (0.375 + 0.625) / 2, 1e-15);
  check_values(classes.value, {0.25, 0.75, 0, 0.5, 0.25, 0.25});
  const std::vector<double> y{1, 2, 3, 6, 0, 0, 4, 4};
  const Measured squared = measure(CriterionKind::squared_error, real_targets(y, 2));
  CHECK_NEAR(squared.impurity, (3.5 + 4.0) / 2, 1e-12);
  check_values(squared.value, {3, 2});
  const Measured absolute = measure(CriterionKind::absolute_error, real_targets(y, 2));
  CHECK_NEAR(absolute.impurity, (1.5 + 2.0) / 2, 1e-12);
  check_values(absolute.value, {2.5, 2});
}

TEST(regression_criteria_match_their_formulas) {
  const std::vector<double> y{1, 2, 3, 6};
  const Measured squared = measure(CriterionKind::squared_error, real_targets(y));
  CHECK_NEAR(squared.impurity, 3.5, 1e-12);
  check_values(squared.value, {3});
  // Targets far from zero keep their digits.
  std::vector<double> far;
  for (const double value : y) far.push_back(value + 1e9);
  const Measured shifted = measure(CriterionKind::squared_error, real_targets(far));
  CHECK_NEAR(shifted.impurity, 3.5, 1e-12);
  check_values(shifted.value, {1e9 + 3});
  const Measured poisson = measure(CriterionKind::poisson, real_targets(y));
  double expected = 0;
  for (const double value : y) expected += value * std::log(value / 3) / 4;
  CHECK_NEAR(poisson.impurity, expected, 1e-12);
  check_values(poisson.value, {3});
  const std::vector<double> zeros{0, 4};
  CHECK_NEAR(measure(CriterionKind::poisson, real_targets(zeros)).impurity, 2 * std::log(2.0),
             1e-12);
  CHECK(std::isinf(measure(CriterionKind::poisson, real_targets(zeros), {0}).impurity));
  const std::vector<double> weights{2, 1, 0, 1};
  const Measured weighted =
      measure(CriterionKind::squared_error, real_targets(y, 1, weights, true));
  CHECK(weighted.weight == 4);
  CHECK_NEAR(weighted.impurity, 4.25, 1e-12);  // mean 2.5; (2·2.25 + 0.25 + 12.25) / 4
}

TEST(absolute_error_is_measured_from_the_median) {
  const std::vector<double> y{1, 2, 10, 3};
  const auto impurity = [&](const std::vector<Row>& rows) {
    return measure(CriterionKind::absolute_error, real_targets(y), rows);
  };
  CHECK_NEAR(impurity({0, 1, 2}).impurity, 3, 1e-12);
  check_values(impurity({2, 1, 0}).value, {2});
  CHECK_NEAR(impurity({0, 1, 2, 3}).impurity, 2.5, 1e-12);  // median 2.5
  check_values(impurity({0, 1, 2, 3}).value, {2.5});
  const std::vector<double> weights{1, 1, 3, 0};
  const Measured weighted =
      measure(CriterionKind::absolute_error, real_targets(y, 1, weights, true), {0, 1, 2});
  check_values(weighted.value, {10});
  CHECK_NEAR(weighted.impurity, 17.0 / 5, 1e-12);
  const std::vector<double> half{1, 1, 2, 0};  // the weight below 10 is exactly half
  check_values(
      measure(CriterionKind::absolute_error, real_targets(y, 1, half, true), {0, 1, 2}).value, {6});
}

TEST(scores_order_splits_by_impurity_decrease) {
  common::Stream stream(3, common::Purpose::rows, 0);
  constexpr std::size_t n = 20;
  for (int round = 0; round < 100; ++round) {
    std::vector<std::uint32_t> labels;
    std::vector<double> y;
    std::vector<double> weights;
    for (std::size_t i = 0; i < 2 * n; ++i) {
      labels.push_back(static_cast<std::uint32_t>(stream.below(3)));
      y.push_back(0.5 + static_cast<double>(stream.below(9)));
      weights.push_back(0.1 + stream.uniform());
    }
    for (const CriterionKind kind :
         {CriterionKind::gini, CriterionKind::entropy, CriterionKind::misclassification,
          CriterionKind::squared_error, CriterionKind::poisson, CriterionKind::absolute_error}) {
      for (const std::size_t n_outputs : {1, 2}) {
        const std::vector<std::uint32_t> own(labels.begin(),
                                             labels.begin() + static_cast<long>(n * n_outputs));
        const std::vector<double> own_y(y.begin(), y.begin() + static_cast<long>(n * n_outputs));
        const Targets targets =
            is_classification(kind)
                ? class_targets(own, std::vector<std::uint32_t>(n_outputs, 3), weights)
                : real_targets(own_y, n_outputs, weights);
        const auto criterion = make_criterion(kind, targets, table::EntryLayout{});
        double score[2];
        double after[2];  // weighted impurity of the children
        for (int s = 0; s < 2; ++s) {
          std::vector<Row> left{0};
          std::vector<Row> right{1};
          for (Row row = 2; row < n; ++row) (stream.below(2) == 0 ? left : right).push_back(row);
          std::vector<double> a(criterion->stat_size());
          std::vector<double> b(criterion->stat_size());
          criterion->sum(left.data(), static_cast<Row>(left.size()), a.data());
          criterion->sum(right.data(), static_cast<Row>(right.size()), b.data());
          score[s] = criterion->score(a.data(), b.data());
          after[s] = a[0] * criterion->impurity(a.data()) + b[0] * criterion->impurity(b.data());
        }
        if (std::abs(after[0] - after[1]) < 1e-9) continue;
        CHECK((score[0] > score[1]) == (after[0] < after[1]));
      }
    }
  }
}

TEST(only_pure_sides_reach_the_perfect_score) {
  const std::vector<double> x{1, 2, 3, 4, 5, 6};
  const std::vector<std::uint32_t> separable{0, 0, 0, 1, 1, 1};
  const std::vector<std::uint32_t> mixed{0, 0, 1, 0, 1, 1};
  const std::vector<double> integers{1, 2, 1, 1, 3, 1};
  const std::vector<double> reals{0.1, 0.2, 0.3, 0.4, 0.5, 0.6};
  for (const CriterionKind kind :
       {CriterionKind::gini, CriterionKind::entropy, CriterionKind::misclassification}) {
    for (const auto* weights :
         {static_cast<const std::vector<double>*>(nullptr), &integers, &reals}) {
      for (const auto* labels : {&separable, &mixed}) {
        for (const std::uint32_t n_classes : {2U, 3U}) {
          const Targets targets = class_targets(
              *labels, {n_classes}, weights == nullptr ? std::vector<double>{} : *weights);
          Targets own = targets;
          own.weights = weights == nullptr ? nullptr : weights->data();
          own.integral_weights = weights == &integers;
          const table::EntryLayout layout = table::EntryLayout::make(x.size(), n_classes);
          const auto criterion = make_criterion(kind, own, layout);
          table::CodedColumn column;
          column.missing_code = static_cast<common::Code>(x.size());
          std::vector<table::Entry> entries;
          std::vector<Row> rows;
          for (Row row = 0; row < x.size(); ++row) {
            entries.push_back(layout.pack(row, row, layout.label_bits > 0 ? (*labels)[row] : 0));
            rows.push_back(row);
          }
          std::vector<double> stat(criterion->stat_size());
          criterion->sum(rows.data(), static_cast<Row>(rows.size()), stat.data());
          ScanRequest request;
          request.node = {static_cast<Row>(x.size()), stat.data()};
          request.column = &column;
          request.entries = entries.data();
          request.n_entries = static_cast<Row>(entries.size());
          ScanScratch scratch;
          Split split;
          criterion->scan(request, {}, scratch, split);
          CHECK(split.found());
          CHECK((split.score >= criterion->perfect_score(request.node)) == (labels == &separable));
        }
      }
    }
  }
}

TEST(sums_over_lanes_match_sums_over_rows) {
  common::Stream stream(9, common::Purpose::rows, 0);
  constexpr Row n = 50;
  std::vector<std::uint32_t> labels;
  std::vector<double> y;
  std::vector<double> weights;
  std::vector<Row> rows;
  std::vector<LaneValues> values(n);
  for (Row i = 0; i < n; ++i) {
    labels.push_back(static_cast<std::uint32_t>(stream.below(3)));
    y.push_back(static_cast<double>(stream.below(9)));
    weights.push_back(static_cast<double>(1 + stream.below(3)));
    rows.push_back(n - 1 - i);
    for (double& value : values[i].lane) value = static_cast<double>(stream.below(5));
  }
  for (const CriterionKind kind :
       {CriterionKind::gini, CriterionKind::entropy, CriterionKind::squared_error,
        CriterionKind::poisson, CriterionKind::absolute_error}) {
    for (const bool weighted : {false, true}) {
      const std::vector<double> own = weighted ? weights : std::vector<double>{};
      const Targets targets = is_classification(kind) ? class_targets(labels, {3}, own, true)
                                                      : real_targets(y, 1, own, true);
      const auto criterion = make_criterion(kind, targets, table::EntryLayout{});
      const std::size_t size = criterion->stat_size();
      RowTargets row_targets;
      const LaneCriterion* const lanes = criterion->lanes();
      CHECK((lanes != nullptr) ==
            (kind == CriterionKind::gini || kind == CriterionKind::squared_error));
      RowSpan span{rows.data(), nullptr, nullptr, n};
      std::vector<double> expected(size);
      criterion->sum(rows.data(), n, expected.data());
      if (lanes != nullptr) {
        lanes->load(rows.data(), n, row_targets);
        span.packed = row_targets.packed.data();
        span.means = row_targets.means.data();
        std::vector<double> stat(size);
        lanes->sum_rows(span, stat.data());
        check_values(stat, expected);
      }
      for (const std::size_t n_used : {1U, 3U, 8U}) {
        LaneValues cut;
        for (std::size_t l = 0; l < n_lanes; ++l) {
          cut.lane[l] = static_cast<double>(l % 4);
        }
        std::vector<double> stats(n_lanes * size);
        Row n_left[n_lanes] = {};
        ScanScratch scratch;
        sum_lanes(*criterion, {span, n_used, 1}, values.data(), cut, stats.data(), n_left, scratch);
        for (std::size_t l = 0; l < n_used; ++l) {
          std::vector<Row> left;
          std::vector<double> column;
          for (Row i = 0; i < n; ++i) {
            column.push_back(values[i].lane[l]);
            if (values[i].lane[l] <= cut.lane[l]) left.push_back(rows[i]);
          }
          CHECK(n_left[l] == left.size());
          criterion->sum(left.data(), n_left[l], expected.data());
          std::vector<double> below(size);
          CHECK(sum_below(*criterion, span, column.data(), cut.lane[l], below.data(), scratch) ==
                n_left[l]);
          const std::size_t n_checked = lanes == nullptr || is_classification(kind) ? size : 2;
          for (std::size_t k = 0; k < n_checked; ++k) {
            CHECK_NEAR(stats[l * size + k], expected[k], 1e-9);
            CHECK_NEAR(below[k], expected[k], 1e-9);
          }
        }
      }
    }
  }
}
