// Compares every split of grown trees with a brute-force search over all splits.
#include <memory>

#include "slow_splits.h"
#include "spinney/tree/counted_grower.h"
#include "spinney/tree/grower.h"
#include "spinney/tree/prepared_table.h"
#include "spinney/tree/presorted_table.h"
#include "spinney/tree/search.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::tree;
using common::Row;
using criterion::CriterionKind;
using forest::no_child;
using forest::Tree;
using slow::Problem;
using slow::Weighting;

namespace {

enum class Kind : std::uint8_t { presorted, reused, sampled, coarse, random, counted };

GrowOptions options_for(const Problem& p, const slow::Limits& limits, Kind kind) {
  GrowOptions options;
  options.criterion = p.kind;
  options.max_depth = 3;
  options.min_samples_leaf = static_cast<std::int64_t>(limits.min_samples_leaf);
  options.min_weight_leaf = limits.min_weight_leaf;
  options.monotonic_cst.assign(limits.monotonic.begin(), limits.monotonic.end());
  options.random_splits = kind == Kind::random;
  options.coarse = kind == Kind::coarse;
  options.seed = 7;
  return options;
}

Tree grow(const Problem& p, const slow::Limits& limits, Kind kind) {
  const table::Table table = p.table();
  const criterion::Targets targets = p.targets();
  GrowOptions options = options_for(p, limits, kind);
  common::Watch watch;
  TreeScratch scratch;
  switch (kind) {
    case Kind::presorted:
      return grow_tree(table, targets, options, watch);
    case Kind::reused: {
      const PresortedTable presorted(table, targets, p.kind, 1);
      grow_tree(presorted, targets, options, watch, scratch);
      return grow_tree(presorted, targets, options, watch, scratch), scratch.tree;
    }
    case Kind::counted: {
      std::vector<double> weights = p.weights;
      CountedGrower grower(table, targets, options, weights.data());
      grower.grow(options.seed, watch);
      return grower.tree();
    }
    default: {
      const PreparedTable prepared(table, options.random_splits, 1);
      grow_tree(prepared, targets, options, watch, scratch);
      return scratch.tree;
    }
  }
}

// Checks all nodes below `node`, which these rows reach.
void check_node(const Problem& p, const slow::Limits& limits, const Tree& tree, std::size_t node,
                const std::vector<Row>& rows, std::size_t depth, bool is_best) {
  const double impurity = slow::impurity(p, rows);
  CHECK(tree.n_rows[node] == static_cast<std::int64_t>(rows.size()));
  CHECK_NEAR(tree.weight[node], slow::total_weight(p, rows), 1e-9);
  CHECK_NEAR(tree.impurity[node], impurity, 1e-9);
  const double best = slow::best_decrease(p, rows, limits);
  // Limits may forbid the best prefix of ordered categories, and other subsets are not tried.
  const bool limited = limits.min_samples_leaf > 1 || limits.min_weight_leaf > 0;
  const double required = limited ? slow::best_decrease(p, rows, limits, false) : best;
  if (tree.left[node] == no_child) {
    CHECK(depth == 3 || impurity < 1e-9 || required < 1e-9);
    return;
  }
  const slow::Sides sides = slow::partition(p, tree, node, rows);
  const auto feature = static_cast<std::size_t>(tree.feature[node]);
  CHECK(!sides.left.empty() && !sides.right.empty());
  if (sides.left.empty() || sides.right.empty()) return;
  CHECK(slow::is_allowed(p, sides, feature, limits));
  const double reached = slow::decrease(p, rows, sides);
  CHECK(reached <= best + 1e-9);
  if (is_best) CHECK(reached >= required - 1e-9);
  check_node(p, limits, tree, static_cast<std::size_t>(tree.left[node]), sides.left, depth + 1,
             is_best);
  check_node(p, limits, tree, static_cast<std::size_t>(tree.right[node]), sides.right, depth + 1,
             is_best);
}

void check(const Problem& p, const slow::Limits& limits, Kind kind, bool is_best = true) {
  check_node(p, limits, grow(p, limits, kind), 0, slow::rows_with_weight(p), 0, is_best);
}

constexpr CriterionKind all_kinds[] = {
    CriterionKind::gini,          CriterionKind::entropy, CriterionKind::misclassification,
    CriterionKind::squared_error, CriterionKind::poisson, CriterionKind::absolute_error};
constexpr Weighting all_weightings[] = {Weighting::none, Weighting::integers, Weighting::reals};

// Calls body with small problems of every criterion, weighting and number of outputs. Absolute
// error orders categories by their medians, which need not contain the best subset.
template <class Body>
void for_each_problem(slow::Shape shape, const Body& body) {
  std::uint64_t seed = 0;
  for (const CriterionKind kind : all_kinds) {
    for (const Weighting weighting : all_weightings) {
      for (const std::size_t n_outputs : {1, 2}) {
        for (const std::uint32_t n_classes : {2U, 4U}) {
          slow::Shape own = shape;
          if (kind == CriterionKind::absolute_error) own.n_categorical = 0;
          body(slow::draw(own, kind, n_outputs, n_classes, weighting, ++seed));
        }
      }
    }
  }
}

}  // namespace

TEST(presorted_and_sampled_searches_find_the_best_splits) {
  for (const bool missing : {false, true}) {
    slow::Shape shape;
    shape.missing = missing;
    for_each_problem(shape, [](const Problem& p) {
      for (const Kind kind : {Kind::presorted, Kind::reused, Kind::sampled, Kind::coarse}) {
        check(p, {}, kind);
        check(p, {5, 3.5, {}}, kind);
      }
    });
  }
}

TEST(searches_keep_monotonic_constraints) {
  slow::Shape shape;
  shape.n_categorical = 0;
  shape.n_values = 20;
  for_each_problem(shape, [](const Problem& p) {
    if (p.n_outputs > 1 || (criterion::is_classification(p.kind) && p.n_classes > 2)) return;
    for (const Kind kind : {Kind::presorted, Kind::sampled, Kind::coarse, Kind::random}) {
      const slow::Limits limits{1, 0, {1, -1, 0}};
      Tree tree = grow(p, limits, kind);
      // Bounds of ancestors restrict deeper nodes, so only the root is compared.
      const std::vector<Row> rows = slow::rows_with_weight(p);
      const double best = slow::best_decrease(p, rows, limits);
      if (tree.left[0] == no_child) {
        CHECK(kind == Kind::random || best < 0);
        continue;
      }
      const slow::Sides sides = slow::partition(p, tree, 0, rows);
      CHECK(slow::is_allowed(p, sides, static_cast<std::size_t>(tree.feature[0]), limits));
      if (kind != Kind::random) CHECK_NEAR(slow::decrease(p, rows, sides), best, 1e-9);
    }
  });
}

TEST(histograms_of_cells_are_exact_next_to_the_best_cut) {
  // More rows than the lanes sort: cells of one value each, then cells of several values. With
  // several values per cell, the reference is the exact search.
  for (const std::uint64_t n_values : {30U, 2000U}) {
    for (const CriterionKind kind : {CriterionKind::gini, CriterionKind::squared_error}) {
      for (const Weighting weighting : {Weighting::none, Weighting::integers}) {
        slow::Shape shape;
        shape.n_rows = 400;
        shape.n_numeric = 2;
        shape.n_categorical = 0;
        shape.n_values = n_values;
        shape.missing = false;
        Problem p = slow::draw(shape, kind, 1, 2, weighting, n_values);
        for (std::size_t i = 0; i < p.n; ++i) {  // one clear cut
          p.labels[i] = p.x[1][i] * 3 > static_cast<double>(n_values) ? 1 : 0;
          p.y[i] = 10.0 * p.labels[i];
        }
        const Tree exact = grow(p, {}, Kind::sampled);
        const Tree coarse = grow(p, {}, Kind::coarse);
        CHECK(exact.feature == coarse.feature && exact.threshold == coarse.threshold);
        CHECK(exact.n_rows == coarse.n_rows && coarse.impurity[0] > 0);
        check(p, {}, Kind::coarse);
      }
    }
  }
}

TEST(random_search_finds_the_best_of_columns_with_one_cut) {
  // Every threshold between two values gives the same partition, so that the result is not random.
  slow::Shape shape;
  shape.n_categorical = 0;
  shape.n_values = 2;
  shape.missing = false;
  for_each_problem(shape, [](const Problem& p) { check(p, {}, Kind::random); });
  for_each_problem(shape, [](const Problem& p) { check(p, {4, 2.5, {}}, Kind::random); });
}

TEST(random_search_draws_valid_splits) {
  for_each_problem({}, [](const Problem& p) { check(p, {}, Kind::random, false); });
  for_each_problem({}, [](const Problem& p) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      GrowOptions options = options_for(p, {}, Kind::random);
      options.max_features = 2;
      options.seed = seed;
      common::Watch watch;
      const Tree tree = grow_tree(p.table(), p.targets(), options, watch);
      if (tree.left[0] == no_child) continue;
      const slow::Sides sides = slow::partition(p, tree, 0, slow::rows_with_weight(p));
      CHECK(!sides.left.empty() && !sides.right.empty());
    }
  });
}

TEST(random_thresholds_are_uniform) {
  Problem p;
  p.n = 3;
  p.x = {{0, 1, 4}};
  p.n_categories = {0};
  p.codes = {{}};
  p.kind = CriterionKind::squared_error;
  p.y = {0, 1, 2};
  double sum = 0;
  int n_between = 0;
  constexpr int n = 4000;
  for (int seed = 0; seed < n; ++seed) {
    GrowOptions options = options_for(p, {}, Kind::random);
    options.seed = static_cast<std::uint64_t>(seed);
    options.max_depth = 1;
    common::Watch watch;
    const Tree tree = grow_tree(p.table(), p.targets(), options, watch);
    CHECK(tree.threshold[0] >= 0 && tree.threshold[0] < 4);
    sum += tree.threshold[0];
    n_between += tree.threshold[0] >= 1 ? 1 : 0;
  }
  CHECK_NEAR(sum / n, 2.0, 0.1);  // standard error: 4 / √12 / √n = 0.018
  CHECK_NEAR(static_cast<double>(n_between) / n, 0.75, 0.04);
}

TEST(counted_grower_finds_the_best_splits) {
  for (const std::uint32_t n_classes : {2U, 4U}) {
    for (const bool missing : {false, true}) {
      for (std::uint64_t seed = 0; seed < 20; ++seed) {
        slow::Shape shape;
        shape.missing = missing;
        shape.n_categorical = n_classes == 2 ? 2 : 0;
        if (seed % 4 == 0) shape.n_values = 2;  // columns with a common code
        Problem p = slow::draw(shape, CriterionKind::gini, 1, n_classes, Weighting::reals, seed);
        if (seed % 3 == 0) p.weights[seed] = 0;
        const double total = slow::total_weight(p, slow::rows_with_weight(p));
        for (double& weight : p.weights) weight /= total;
        check(p, {}, Kind::counted);
        check(p, {4, 0.05, {}}, Kind::counted);
      }
    }
  }
}

TEST(counted_grower_multiplies_weights_by_leaf_and_class) {
  Problem p = slow::draw({}, CriterionKind::gini, 1, 2, Weighting::none, 5);
  std::vector<double> weights(p.n, 1.0 / static_cast<double>(p.n));
  p.weights = weights;
  const table::Table table = p.table();
  const criterion::Targets targets = p.targets();
  const GrowOptions options = options_for(p, {}, Kind::counted);
  CountedGrower grower(table, targets, options, weights.data());
  common::Watch watch;
  grower.grow(1, watch);
  const Tree tree = grower.tree();
  std::vector<double> factors(2 * tree.size());
  for (std::size_t i = 0; i < factors.size(); ++i)
    factors[i] = 0.5 + 0.1 * static_cast<double>(i % 7);
  grower.reweigh(factors, 1e-3);
  for (std::size_t row = 0; row < p.n; ++row) {
    std::size_t node = 0;
    while (tree.left[node] != no_child) {
      const slow::Sides sides = slow::partition(p, tree, node, {static_cast<Row>(row)});
      node = static_cast<std::size_t>(sides.left.empty() ? tree.right[node] : tree.left[node]);
    }
    const double expected = std::max(p.weights[row] * factors[2 * node + p.labels[row]], 1e-3);
    CHECK_NEAR(weights[row], expected, 1e-15);
  }
  // The next tree uses the new weights.
  p.weights = weights;
  grower.grow(2, watch);
  check_node(p, {}, grower.tree(), 0, slow::rows_with_weight(p), 0, true);
}

TEST(thresholds_are_between_their_rows) {
  CHECK(midpoint(1.0, 2.0) == 1.5);
  CHECK(midpoint(-1e308, 1e308) == 0.0);
  CHECK(midpoint(1e308, 1.5e308) == 1.25e308);
  const double next = std::nextafter(1.0, 2.0);
  CHECK(midpoint(1.0, next) == 1.0);  // never the upper value
  CHECK(narrowed(0.1, 0.05, 0.2) == static_cast<double>(0.1F));
  CHECK(narrowed(1.0, 1.0, next) == 1.0);
  const double below = 1.0 + 0x1.0p-40;  // no float32 between two neighbours
  const double above = 1.0 + 0x1.8p-40;
  CHECK(narrowed(1.0 + 0x1.4p-40, below, above) == 1.0 + 0x1.4p-40);
}
