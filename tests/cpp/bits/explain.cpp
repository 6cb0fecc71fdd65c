#include <algorithm>
#include <string>
#include <utility>

#include "bits.h"
#include "spinney/ensemble/forest_grower.h"
#include "spinney/explain/dependence.h"
#include "spinney/explain/shuffles.h"
#include "spinney/explain/tree_explainer.h"

namespace bits {

using namespace spinney;

namespace {

forest::Forest grow(std::int64_t max_depth) {
  forest::Forest forest;
  forest.shape = {criterion::CriterionKind::squared_error, {}, 1, false};
  forest.n_categories = train().n_categories();
  ensemble::ForestOptions options;
  options.tree.criterion = criterion::CriterionKind::squared_error;
  options.tree.max_features = 4;
  options.tree.max_depth = max_depth;
  options.tree.seed = 6;
  options.n_trees = 4;
  options.n_threads = n_threads;
  options.bootstrap = true;
  options.n_drawn = train().n_rows;
  const table::Table table = train().table();
  const tree::PreparedTable prepared(table, false, n_threads);
  ensemble::OutOfBag out_of_bag;
  common::Watch watch;
  ensemble::grow_forest(prepared, train().targets(options.tree.criterion), options, forest,
                        out_of_bag, watch);
  return forest;
}

explain::GameTree as_game(const forest::Tree& from) {
  explain::GameTree tree;
  tree.width = from.value_size;
  tree.left.assign(from.left.begin(), from.left.end());
  tree.right.assign(from.right.begin(), from.right.end());
  tree.feature = from.feature;
  tree.threshold = from.threshold;
  tree.missing_left = from.missing_left;
  tree.category_start = from.category_start;
  tree.category_bits = from.category_bits;
  tree.value = from.value;
  tree.share_left.assign(from.size(), 0.5);
  for (std::size_t node = 0; node < from.size(); ++node) {
    if (from.left[node] == forest::no_child) continue;
    const auto left = static_cast<std::size_t>(from.left[node]);
    tree.share_left[node] = from.weight[left] / from.weight[node];
  }
  return tree;
}

table::Table first_rows(table::Table table, std::size_t n) {
  table.n_rows = n;
  return table;
}

void print_shapley(std::int64_t max_depth, bool with_background, bool interactions) {
  print("explain depth " + std::to_string(max_depth) + (with_background ? " background" : "") +
            (interactions ? " interactions" : ""),
        [&](Hash& hash) {
          const forest::Forest forest = grow(max_depth);
          explain::TreeExplainer explainer(forest.n_categories, 1);
          for (const forest::CompactTree& tree : forest.trees) {
            explainer.append(as_game(forest::expand(tree, forest.shape, forest.n_categories)));
          }
          if (with_background) explainer.set_background(first_rows(train().table(), 20));
          double base = 0;
          explainer.base_values(&base);
          hash.add(base);
          for (const std::size_t n : {std::size_t{5}, std::size_t{80}}) {
            const std::size_t d = forest.n_features();
            std::vector<double> out(n * d * (interactions ? d : 1));
            common::Watch watch;
            explainer.explain(first_rows(test().table(), n), interactions, n_threads, out.data(),
                              watch);
            hash.add(out);
          }
        });
}

}  // namespace

void print_explain() {
  for (const std::int64_t max_depth : {3, 6, 30}) {
    for (const bool with_background : {false, true}) {
      for (const bool interactions : {false, true}) {
        print_shapley(max_depth, with_background, interactions);
      }
    }
  }
  const forest::Forest forest = grow(8);
  const explain::TreeSum sum{forest, forest.trees.size(), 1, false, false};
  print("explain dependence", [&](Hash& hash) {
    const std::vector<double> values{-1.5, 0, -0.5, 1, 0.5, 2, 1.5, 0};
    explain::Settings settings;
    settings.features = {0, 4};
    settings.n = 4;
    settings.values = values.data();
    std::vector<double> sums(4), scores(test().n_rows * 4);
    explain::sum_settings(sum, test().table(), settings, n_threads, sums.data());
    explain::score_settings(sum, test().table(), settings, n_threads, scores.data());
    hash.add(sums);
    hash.add(scores);
  });
  print("explain shuffles", [&](Hash& hash) {
    const std::size_t n = test().n_rows;
    std::vector<std::int64_t> orders;
    for (const std::size_t step : {1U, 100U}) {
      for (std::size_t i = 0; i < n; ++i) {
        orders.push_back(static_cast<std::int64_t>((i + step) % n));
      }
    }
    explain::Shuffles shuffles;
    shuffles.groups = {{0}, {2, 4}, {7}};
    shuffles.n_repeats = 2;
    shuffles.orders = orders.data();
    std::vector<double> scores(n * 3 * 2);
    explain::score_shuffles(sum, test().table(), shuffles, n_threads, scores.data());
    hash.add(scores);
  });
}

}  // namespace bits
