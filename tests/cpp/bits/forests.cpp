#include <array>
#include <string>
#include <utility>

#include "bits.h"
#include "spinney/ensemble/adaboost.h"
#include "spinney/ensemble/forest_grower.h"
#include "spinney/forest/forest_state.h"
#include "spinney/serving/forest_reader.h"
#include "spinney/serving/quantiles.h"
#include "spinney/serving/votes.h"

namespace bits {

using namespace spinney;
using criterion::CriterionKind;

namespace {

void add_forest(Hash& hash, const forest::Forest& forest) {
  forest::ForestState state = forest::to_state(forest);
  state.visit([&](const char*, const auto& array) { hash.add(array); });
}

ensemble::ForestOptions default_options(CriterionKind kind) {
  ensemble::ForestOptions options;
  options.tree.criterion = kind;
  options.tree.max_features = 3;
  options.tree.coarse = options.tree.narrow_thresholds = true;
  options.tree.seed = 9;
  options.n_trees = 5;
  options.n_threads = n_threads;
  options.bootstrap = true;
  options.n_drawn = train().n_rows;
  options.out_of_bag = true;
  options.keep_members = !criterion::is_classification(kind);
  options.importance = ensemble::Importance::permutation;
  return options;
}

void fit_forest(Hash& hash, CriterionKind kind, const ensemble::ForestOptions& options,
                const double* weights) {
  const bool is_classification = criterion::is_classification(kind);
  criterion::Targets targets = train().targets(kind);
  targets.weights = weights;
  forest::Forest forest;
  forest.shape = {kind, targets.n_classes, 1, false};
  forest.n_categories = train().n_categories();
  const table::Table table = train().table();
  const table::Table queries = test().table();
  const tree::PreparedTable prepared(table, options.tree.random_splits, n_threads);
  ensemble::OutOfBag out_of_bag;
  common::Watch watch;
  ensemble::grow_forest(prepared, targets, options, forest, out_of_bag, watch);
  add_forest(hash, forest);
  hash.add(out_of_bag.sums);
  hash.add(out_of_bag.squares);
  hash.add(out_of_bag.curve);
  hash.add(out_of_bag.importances);
  std::vector<double> sums(queries.n_rows * forest.shape.width());
  serving::sum_predictions(forest, queries, false, n_threads, sums.data());
  hash.add(sums);
  std::vector<double> importances(forest.trees.size() * forest.n_features());
  serving::impurity_importances(forest, n_threads, importances.data());
  hash.add(importances);
  if (!is_classification && options.keep_members) {
    const std::vector<double> q{0.1, 0.5, 0.9};
    std::vector<double> quantiles(queries.n_rows * q.size());
    serving::predict_quantiles(forest, queries, targets.values, train().n_rows, nullptr, q,
                               n_threads, quantiles.data());
    hash.add(quantiles);
  }
}

void print_isolation_forest() {
  print("forest isolation", [](Hash& hash) {
    forest::Forest forest;
    forest.shape = {CriterionKind::squared_error, {}, 1, false};
    forest.n_categories = train().n_categories();
    ensemble::ForestOptions options;
    options.tree.criterion = CriterionKind::squared_error;
    options.tree.random_splits = true;
    options.tree.max_features = 1;
    options.tree.max_depth = 8;
    options.tree.seed = 4;
    options.n_trees = 10;
    options.n_threads = n_threads;
    options.bootstrap = true;
    options.replace = false;
    options.n_drawn = 256;
    criterion::Targets targets = train().targets(CriterionKind::squared_error);
    const table::Table table = train().table();
    const tree::PreparedTable prepared(table, true, n_threads);
    ensemble::OutOfBag out_of_bag;
    common::Watch watch;
    ensemble::grow_forest(prepared, targets, options, forest, out_of_bag, watch);
    add_forest(hash, forest);
    std::vector<double> depths(test().n_rows);
    serving::sum_path_lengths(forest, test().table(), n_threads, depths.data());
    hash.add(depths);
  });
}

void print_adaboost() {
  using ensemble::AdaBoostKind;
  for (const auto& [name, kind] :
       {std::pair{"samme", AdaBoostKind::samme}, std::pair{"m1", AdaBoostKind::m1},
        std::pair{"real", AdaBoostKind::real}}) {
    print(std::string("adaboost ") + name, [&](Hash& hash) {
      std::vector<std::uint64_t> seeds(12);
      for (std::size_t i = 0; i < seeds.size(); ++i) seeds[i] = i + 1;
      ensemble::AdaBoostOptions options;
      options.kind = kind;
      options.tree.max_depth = 3;
      options.tree.n_threads = n_threads;
      options.n_rounds = seeds.size();
      options.learning_rate = 0.7;
      options.seeds = seeds.data();
      const auto n = static_cast<double>(train().n_rows);
      std::vector<double> weights(train().n_rows, 1 / n);
      criterion::Targets targets = train().targets(CriterionKind::gini);
      targets.weights = weights.data();
      forest::Forest forest;
      forest.shape = {CriterionKind::gini, {3}, 1, false};
      forest.n_categories = train().n_categories();
      ensemble::AdaBoostHistory history;
      common::Watch watch;
      ensemble::adaboost(train().table(), targets, options, weights.data(), forest, history, watch);
      add_forest(hash, forest);
      hash.add(history.weights);
      hash.add(history.errors);
      hash.add(weights);
      std::vector<double> votes(test().n_rows * 3);
      serving::add_votes(forest, test().table(), history.weights.data(), kind == AdaBoostKind::real,
                         0, forest.trees.size(), n_threads, votes.data());
      hash.add(votes);
    });
  }
}

}  // namespace

void print_forests() {
  const std::array<std::pair<const char*, CriterionKind>, 6> criteria = {
      {{"gini", CriterionKind::gini},
       {"entropy", CriterionKind::entropy},
       {"misclassification", CriterionKind::misclassification},
       {"squared_error", CriterionKind::squared_error},
       {"poisson", CriterionKind::poisson},
       {"absolute_error", CriterionKind::absolute_error}}};
  for (const auto& [name, kind] : criteria) {
    const std::string prefix = std::string("forest ") + name;
    const ensemble::ForestOptions options = default_options(kind);
    const auto run = [&](const char* variant, const ensemble::ForestOptions& with,
                         const double* weights = nullptr) {
      print(prefix + " " + variant, [&](Hash& hash) { fit_forest(hash, kind, with, weights); });
    };
    run("bootstrap", options);
    run("weights", options, train().fractions.data());
    ensemble::ForestOptions random = options;
    random.tree.random_splits = true;
    random.bootstrap = random.out_of_bag = random.keep_members = false;
    random.importance = ensemble::Importance::none;
    run("random splits", random);
    ensemble::ForestOptions drawn = options;
    drawn.replace = false;
    drawn.n_drawn = 500;
    drawn.draw_weights = train().fractions.data();
    drawn.ccp_alpha = 0.001;
    drawn.importance = ensemble::Importance::corrected;
    run("weighted draws", drawn);
  }
  // Most of the weight is on few rows: the rest is drawn by exponential variates.
  print("forest draws without replacement", [](Hash& hash) {
    std::vector<double> weights = train().fractions;
    for (std::size_t i = 0; i < 5; ++i) weights[i] = 1e9;
    hash.add(ensemble::draw_bag(weights.size(), 400, false, weights.data(), 3));
  });
  print_isolation_forest();
  print_adaboost();
}

}  // namespace bits
