#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "spinney/boosting/booster.h"
#include "spinney/common/check.h"
#include "spinney/common/exp.h"
#include "spinney/common/random.h"
#include "spinney/serving/block_scorer.h"
#include "spinney/serving/forest_reader.h"
#include "spinney/serving/scorers.h"
#include "spinney/table/binned_matrix.h"
#include "spinney/table/cut_search.h"
#include "spinney/table/exact_matrix.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::boosting;
using namespace spinney::serving;

namespace {

// Numbers with missing values, one-hot columns, a constant and a categorical column.
struct BoostData {
  std::vector<double> x;  // row-major
  std::vector<std::int32_t> category;
  std::vector<double> y;
  table::Table table;
  forest::Forest forest;

  explicit BoostData(std::size_t n) {
    constexpr std::size_t d = 9;
    common::Stream stream(5, common::Purpose::rows, n);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t hot = stream.below(5);
      for (std::size_t f = 0; f < 3; ++f) {
        x.push_back(stream.below(20) == 0 ? std::nan("") : stream.uniform());
      }
      for (std::size_t f = 0; f < 5; ++f) x.push_back(f == hot ? 1.0 : 0.0);
      x.push_back(4.0);
      category.push_back(static_cast<std::int32_t>(stream.below(12)) - 1);
      const double noise = stream.uniform();
      y.push_back(x[i * d] > 0.5 ? 1.0 + noise : static_cast<double>(hot) * noise);
    }
    table.n_rows = n;
    for (std::size_t f = 0; f < d; ++f) {
      table::Column column;
      column.data = reinterpret_cast<const std::byte*>(x.data() + f);
      column.stride = static_cast<std::ptrdiff_t>(d * sizeof(double));
      table.columns.push_back(column);
    }
    table::Column column;
    column.kind = table::ColumnKind::categorical;
    column.dtype = table::Dtype::int32;
    column.n_categories = 11;
    column.data = reinterpret_cast<const std::byte*>(category.data());
    column.stride = sizeof(std::int32_t);
    table.columns.push_back(column);
    forest.shape.inner_values = true;
    forest.n_categories.assign(d, 0);
    forest.n_categories.push_back(11);
  }

  // Returns the scores of the rows after the fit.
  std::vector<double> boost_with(const BoostOptions& options) {
    return boost_on(table::BinnedMatrix(table, 255, options.n_threads), options);
  }

  std::vector<double> boost_on(const table::RowMatrix& matrix, const BoostOptions& options) {
    std::vector<double> scores(table.n_rows * options.loss.n_scores);
    Validation none;
    BoostHistory history;
    common::Watch watch;
    forest.trees.clear();
    boost(matrix, nullptr, y.data(), nullptr, scores.data(), none, options, forest, history, watch);
    return scores;
  }
};

BoostOptions options_with(int n_threads, std::size_t max_leaves) {
  BoostOptions options;
  options.n_rounds = 12;
  options.n_threads = n_threads;
  options.tree.max_leaf_nodes = max_leaves;
  options.tree.split.min_samples_leaf = 3;
  options.tree.split.l2_regularization = 1;
  return options;
}

}  // namespace

TEST(exp_is_accurate) {
  for (double x = -700; x < 700; x += 0.377) {
    CHECK(std::abs(common::exp(x) / std::exp(x) - 1) < 4e-16);
  }
  CHECK(common::exp(0.0) == 1.0);
  CHECK(common::exp(-1e9) > 0);
  CHECK(std::isfinite(common::exp(1e9)));
}

TEST(cuts_are_between_values_at_quantiles) {
  std::vector<double> values;
  common::Stream stream(1, common::Purpose::rows, 0);
  for (int i = 0; i < 5000; ++i) values.push_back(std::floor(1000 * stream.uniform()) / 7);
  std::sort(values.begin(), values.end());
  std::vector<double> distinct;
  std::vector<std::uint64_t> counts;
  for (const double value : values) {
    if (distinct.empty() || value > distinct.back()) {
      distinct.push_back(value);
      counts.push_back(0);
    }
    ++counts.back();
  }
  const std::vector<double> cuts = table::find_cuts(distinct, counts, 40);
  CHECK(cuts.size() == 39);
  std::size_t at = 0;
  for (const double cut : cuts) {
    std::size_t n = 0;
    while (values[at] <= cut) ++at, ++n;
    CHECK(n > 5000 / 80 && n < 5000 / 20);
  }
  CHECK(table::find_cuts(std::vector<double>{2.0}, std::vector<std::uint64_t>{3}, 40).empty());
  // Unsorted values with missing values have the same cuts.
  std::reverse(values.begin(), values.end());
  values.insert(values.begin() + 77, std::numeric_limits<double>::quiet_NaN());
  CHECK(table::find_cuts(std::span<const double>(values), 40) == cuts);
}

TEST(cuts_of_floats_equal_those_of_doubles) {
  std::vector<float> narrow;
  common::Stream stream(2, common::Purpose::rows, 0);
  for (int i = 0; i < 6000; ++i) narrow.push_back(static_cast<float>(stream.uniform() - 0.5));
  narrow[5] = -0.0F;
  narrow[6] = 0.0F;
  narrow[7] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<double> wide(narrow.begin(), narrow.end());
  for (const std::uint32_t max_bins : {2U, 40U, 255U}) {
    CHECK(table::find_cuts(std::span<const float>(narrow), max_bins) ==
          table::find_cuts(std::span<const double>(wide), max_bins));
  }
}

TEST(weights_become_integers_without_loss_or_overflow) {
  const std::vector<double> whole = {3, 0, 1, 200'000};
  const std::vector<std::uint64_t> units = table::weight_units(whole, 200'000, 200'000);
  CHECK(units[2] > 0 && units[1] == 0);
  CHECK(units[0] == 3 * units[2] && units[3] == 200'000 * units[2]);
  CHECK(units[3] < (std::uint64_t{1} << 53) / 200'000);
  for (const double size : {5e-324, 1e-310, 1e-300, 1.0, 1e300}) {
    const std::vector<double> equal(7, size);
    const std::vector<std::uint64_t> same = table::weight_units(equal, size, equal.size());
    CHECK(same[0] > (std::uint64_t{1} << 45));
    CHECK(same == std::vector<std::uint64_t>(7, same[0]));
  }
  CHECK(table::weight_units(std::vector<double>{1e-300, 1.0}, 1, 2)[0] == 1);
  CHECK(table::weight_units(std::vector<double>(3), 0, 3).empty());
}

// A table that is coded block by block, as by workers, has the same codes.
TEST(blocks_of_a_table_are_coded_in_place) {
  const BoostData data(3000);
  const table::BinnedMatrix whole(data.table, 40, 1);
  std::vector<table::BinnedColumn> bins;
  for (std::size_t f = 0; f < whole.n_features(); ++f) {
    const table::BinnedColumn& column = whole.column(f);
    table::BinnedColumn& own = bins.emplace_back();
    own.categorical = column.categorical;
    own.n_bins = column.n_bins;
    own.cuts = column.cuts;
    own.bin_of = column.bin_of;
  }
  table::BinnedMatrix part(bins, 3000);
  for (const std::size_t first : {std::size_t{1200}, std::size_t{0}}) {
    table::Table block = data.table;
    block.n_rows = first == 0 ? 1200 : 1800;
    for (table::Column& column : block.columns) {
      column.data += static_cast<std::ptrdiff_t>(first) * column.stride;
    }
    part.write(block, first, 2);
  }
  part.complete(std::vector<std::int64_t>(whole.n_features()));
  for (std::size_t f = 0; f < whole.n_features(); ++f) {
    CHECK(part.column(f).has_missing == whole.column(f).has_missing);
    for (std::size_t row = 0; row < 3000; ++row) {
      CHECK(whole.column_codes(f)[row] == part.column_codes(f)[row]);
    }
  }
  table::BinnedMatrix small(bins, 10);
  bool refused = false;
  try {
    small.write(data.table, 0, 1);
  } catch (const common::InputError&) {
    refused = true;
  }
  CHECK(refused);
}

TEST(boosting_has_the_same_bits_on_any_number_of_threads) {
  BoostData data(3000);
  for (const double subsample : {1.0, 0.6}) {
    BoostOptions options = options_with(1, 20);
    options.subsample = subsample;
    options.tree.max_features = subsample;
    const std::vector<double> alone = data.boost_with(options);
    options.n_threads = 3;
    const std::vector<double> together = data.boost_with(options);
    CHECK(alone == together);
  }
}

TEST(training_scores_equal_the_predictions) {
  BoostData data(1500);
  for (const std::size_t leaves : {std::size_t{8}, std::size_t{120}, std::size_t{250}}) {
    const std::vector<double> scores = data.boost_with(options_with(2, leaves));
    CHECK(BlockScorer::serves(data.forest, 0, 12, 5000));
    std::vector<double> predicted(1500);
    add_rounds(data.forest, data.table, 1, 0, 12, 2, predicted.data());
    CHECK(predicted == scores);
  }
}

// Codes without a category count as missing values.
TEST(unknown_codes_count_as_missing_values) {
  BoostData data(600);
  data.boost_with(options_with(1, 20));
  const RowScorer scorer(data.forest, {0.0}, 12, Link::identity);
  const BlockScorer many(data.forest, 0, 12);
  std::vector<double> row(data.x.begin(), data.x.begin() + 9);
  row.push_back(std::nan(""));
  double missing = 0;
  scorer.score(row.data(), &missing);
  for (const double code : {-1.0, -1e300, 11.0, 4e9, 1e300}) {
    row[9] = code;
    double of_row = 0;
    scorer.score(row.data(), &of_row);
    CHECK(of_row == missing);
    double of_block = 0;
    many.add(row.data(), 10, 1, 1, &of_block);
    CHECK(of_block == missing);
  }
}

TEST(oblivious_training_scores_equal_the_predictions) {
  BoostData data(1500);
  BoostOptions options = options_with(1, 16);
  options.tree.growth = Growth::oblivious;
  options.tree.split.min_samples_leaf = 1;
  const std::vector<double> alone = data.boost_with(options);
  std::vector<double> predicted(1500);
  add_rounds(data.forest, data.table, 1, 0, 12, 2, predicted.data());
  CHECK(predicted == alone);
  options.n_threads = 3;
  CHECK(data.boost_with(options) == alone);
}

TEST(exact_training_scores_equal_the_predictions) {
  BoostData data(1500);
  const table::ExactMatrix matrix(data.table, true, 2);
  BoostOptions options = options_with(1, 20);
  options.subsample = 0.7;
  options.sampling = Sampling::gradient;
  const std::vector<double> alone = data.boost_on(matrix, options);
  std::vector<double> predicted(1500);
  add_rounds(data.forest, data.table, 1, 0, 12, 2, predicted.data());
  CHECK(predicted == alone);
  options.n_threads = 3;
  CHECK(data.boost_on(matrix, options) == alone);
}

TEST(vector_leaf_training_scores_equal_the_predictions) {
  BoostData data(900);
  data.y.resize(1800);
  for (std::size_t i = 0; i < 900; ++i) data.y[900 + i] = 1 - 2 * data.y[i] + data.x[9 * i + 8];
  data.forest.shape.n_outputs = 2;
  BoostOptions options = options_with(1, 12);
  options.loss.n_scores = 2;
  options.loss.n_targets = 2;
  const std::vector<double> alone = data.boost_with(options);
  CHECK(data.forest.trees.size() == 12);
  std::vector<double> predicted(1800);
  add_rounds(data.forest, data.table, 1, 0, 12, 2, predicted.data());
  for (std::size_t i = 0; i < 900; ++i) {
    CHECK(predicted[2 * i] == alone[i] && predicted[2 * i + 1] == alone[900 + i]);
  }
  options.n_threads = 3;
  CHECK(data.boost_with(options) == alone);
}

TEST(softmax_trees_of_a_round_do_not_depend_on_threads) {
  BoostData data(900);
  for (double& y : data.y) y = std::min(3.0, std::floor(y));
  BoostOptions options = options_with(1, 12);
  options.loss = {.kind = loss::LossKind::softmax, .n_scores = 4};
  const std::vector<double> alone = data.boost_with(options);
  options.n_threads = 3;
  CHECK(data.boost_with(options) == alone);
}
