#include "spinney/ensemble/forest_grower.h"

#include <cmath>
#include <vector>

#include "spinney/common/check.h"
#include "spinney/common/random.h"
#include "spinney/ensemble/bag.h"
#include "spinney/forest/forest_state.h"
#include "spinney/serving/forest_reader.h"
#include "spinney/serving/quantiles.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::ensemble;
using namespace spinney::forest;
using namespace spinney::serving;

namespace {

struct Data {
  std::vector<double> x;  // row-major, some missing
  std::vector<std::int32_t> category;
  std::vector<std::uint32_t> labels;
  std::vector<double> y;
  table::Table table;
  criterion::Targets classes;
  criterion::Targets numbers;

  Data(std::size_t n, std::size_t d) {
    common::Stream stream(3, common::Purpose::rows, n);
    for (std::size_t i = 0; i < n * d; ++i) {
      x.push_back(stream.below(30) == 0 ? std::nan("") : stream.uniform());
    }
    for (std::size_t i = 0; i < n; ++i) {
      category.push_back(static_cast<std::int32_t>(stream.below(9)) - 1);
      labels.push_back(static_cast<std::uint32_t>(stream.below(3)));
      y.push_back(std::floor(20 * stream.uniform()));
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
    column.n_categories = 8;
    column.data = reinterpret_cast<const std::byte*>(category.data());
    column.stride = sizeof(std::int32_t);
    table.columns.push_back(column);
    classes.n_rows = numbers.n_rows = n;
    classes.n_classes = {3};
    classes.labels = labels.data();
    numbers.values = y.data();
  }
};

Forest grow(const Data& data, criterion::CriterionKind kind, bool random_splits, int n_threads,
            OutOfBag& out_of_bag) {
  Forest forest;
  const bool classes = criterion::is_classification(kind);
  forest.shape = {kind, classes ? data.classes.n_classes : std::vector<std::uint32_t>{}, 1, false};
  forest.n_categories.assign(data.table.n_features(), 0);
  forest.n_categories.back() = 8;
  ForestOptions options;
  options.tree.criterion = kind;
  options.tree.max_features = 3;
  options.tree.coarse = options.tree.narrow_thresholds = true;
  options.tree.random_splits = random_splits;
  options.tree.min_samples_leaf = 2;
  options.n_trees = 6;
  options.n_threads = n_threads;
  options.bootstrap = true;
  options.n_drawn = data.table.n_rows;
  options.out_of_bag = true;
  options.keep_members = !classes;
  options.importance = Importance::permutation;
  const tree::PreparedTable prepared(data.table, random_splits, n_threads);
  common::Watch watch;
  grow_forest(prepared, classes ? data.classes : data.numbers, options, forest, out_of_bag, watch);
  return forest;
}

}  // namespace

TEST(forests_are_the_same_for_any_number_of_threads) {
  const Data data(1500, 6);
  for (const criterion::CriterionKind kind :
       {criterion::CriterionKind::gini, criterion::CriterionKind::entropy,
        criterion::CriterionKind::squared_error, criterion::CriterionKind::absolute_error}) {
    for (const bool random_splits : {false, true}) {
      OutOfBag one;
      OutOfBag three;
      ForestState a = to_state(grow(data, kind, random_splits, 1, one));
      ForestState b = to_state(grow(data, kind, random_splits, 3, three));
      CHECK(a.nodes == b.nodes);
      CHECK(a.values == b.values);
      CHECK(a.leaf_class == b.leaf_class);
      CHECK(one.sums == three.sums);
      CHECK(one.curve == three.curve);
      CHECK(one.importances == three.importances);
    }
  }
}

TEST(compact_trees_expand_to_the_grown_trees) {
  const Data data(700, 5);
  for (const criterion::CriterionKind kind :
       {criterion::CriterionKind::gini, criterion::CriterionKind::squared_error}) {
    OutOfBag out_of_bag;
    const Forest forest = grow(data, kind, false, 2, out_of_bag);
    for (const CompactTree& compacted : forest.trees) {
      const forest::Tree tree = expand(compacted, forest.shape, forest.n_categories);
      CHECK(tree.weight[0] == 700.0);
      for (std::size_t node = 0; node < tree.size(); ++node) {
        if (tree.left[node] == forest::no_child) continue;
        const auto left = static_cast<std::size_t>(tree.left[node]);
        const auto right = static_cast<std::size_t>(tree.right[node]);
        CHECK(tree.n_rows[node] == tree.n_rows[left] + tree.n_rows[right]);
        CHECK(tree.n_rows[left] >= 2);
        CHECK(tree.impurity[node] * tree.weight[node] + 1e-9 >=
              tree.impurity[left] * tree.weight[left] + tree.impurity[right] * tree.weight[right]);
      }
      const CompactTree again = compact(tree, forest.shape, forest.n_categories);
      CHECK(again.leaf_rows == compacted.leaf_rows);
      CHECK(again.leaf_class == compacted.leaf_class);
      CHECK(again.values == compacted.values);
      CHECK(again.category_bits == compacted.category_bits);
    }
  }
}

TEST(forest_state_round_trip_and_damage_detection) {
  const Data data(400, 4);
  OutOfBag out_of_bag;
  const Forest forest = grow(data, criterion::CriterionKind::squared_error, false, 1, out_of_bag);
  ForestState state = to_state(forest);
  Forest again;
  again.shape = forest.shape;
  again.n_categories = forest.n_categories;
  from_state(view_of(state), 1, again);
  std::vector<double> a(400);
  std::vector<double> b(400);
  sum_predictions(forest, data.table, false, 2, a.data());
  sum_predictions(again, data.table, false, 1, b.data());
  CHECK(a == b);
  common::Stream stream(1, common::Purpose::rows, 1);
  int n_refused = 0;
  for (int trial = 0; trial < 200; ++trial) {
    ForestState damaged = to_state(forest);
    // Damage any word of the nodes; a reader must not follow indices out of bounds.
    damaged.nodes[stream.below(damaged.nodes.size())] ^= 1U << stream.below(32);
    try {
      from_state(view_of(damaged), 1, again);
      sum_predictions(again, data.table, false, 1, b.data());
    } catch (const common::InputError&) {
      ++n_refused;
    }
  }
  CHECK(n_refused > 50);
}

TEST(bootstrap_counts_are_proportional_to_weights) {
  std::vector<double> weights{0, 1, 2, 3, 0, 4};
  const Bag bag(6, 100'000, true, weights.data());
  std::vector<std::uint32_t> counts(6);
  bag.draw(1, counts.data(), [](std::size_t) {});
  for (std::size_t row = 0; row < 6; ++row) {
    CHECK_NEAR(counts[row], 10'000 * weights[row], 500);
    if (weights[row] == 0) CHECK(counts[row] == 0);
  }
  for (const std::size_t n_drawn : {1U, 3U, 40U, 99U, 100U}) {
    const Bag without(100, n_drawn, false, nullptr);
    std::vector<std::uint32_t> seen(100);
    std::size_t n = 0;
    without.draw(7, seen.data(), [&](std::size_t) { ++n; });
    CHECK(n == n_drawn);
    for (const std::uint32_t count : seen) CHECK(count <= 1);
  }
}

TEST(quantiles_ascend_within_the_range_of_targets) {
  const Data data(300, 4);
  OutOfBag out_of_bag;
  const Forest forest = grow(data, criterion::CriterionKind::squared_error, false, 2, out_of_bag);
  const std::vector<double> q{0, 0.25, 0.5, 0.75, 1};
  std::vector<double> out(300 * q.size());
  predict_quantiles(forest, data.table, data.y.data(), 300, nullptr, q, 2, out.data());
  for (std::size_t row = 0; row < 300; ++row) {
    for (std::size_t k = 0; k + 1 < q.size(); ++k) {
      CHECK(out[row * q.size() + k] <= out[row * q.size() + k + 1]);
    }
    CHECK(out[row * q.size()] >= 0);
    CHECK(out[row * q.size() + 4] <= 19);
  }
}
