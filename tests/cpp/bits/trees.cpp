#include <string>
#include <utility>

#include "bits.h"
#include "spinney/serving/predict.h"
#include "spinney/tree/grower.h"

namespace bits {

using namespace spinney;
using criterion::CriterionKind;

namespace {

void fit_tree(Hash& hash, const table::Table& table, const table::Table& queries,
              const criterion::Targets& targets, const tree::GrowOptions& options) {
  common::Watch watch;
  const forest::Tree tree = tree::grow_tree(table, targets, options, watch);
  add_tree(hash, tree);
  const std::vector<std::int64_t> left(tree.left.begin(), tree.left.end());
  const std::vector<std::int64_t> right(tree.right.begin(), tree.right.end());
  const std::vector<std::int64_t> feature(tree.feature.begin(), tree.feature.end());
  const serving::Predictor predictor({left, right, feature, tree.threshold, tree.missing_left,
                                      tree.category_start, tree.category_bits});
  std::vector<std::int64_t> leaves(queries.n_rows);
  predictor.apply(queries, n_threads, leaves.data());
  hash.add(leaves);
}

}  // namespace

void print_trees() {
  const std::vector<std::pair<const char*, CriterionKind>> criteria = {
      {"gini", CriterionKind::gini},
      {"entropy", CriterionKind::entropy},
      {"misclassification", CriterionKind::misclassification},
      {"squared_error", CriterionKind::squared_error},
      {"poisson", CriterionKind::poisson},
      {"absolute_error", CriterionKind::absolute_error}};
  for (const auto& [name, kind] : criteria) {
    tree::GrowOptions options;
    options.criterion = kind;
    options.n_threads = n_threads;
    options.seed = 5;
    options.min_samples_leaf = 2;
    const std::string prefix = std::string("tree ") + name;
    const table::Table table = train().table();
    const table::Table queries = test().table();
    const auto run = [&](const std::string& variant, const tree::GrowOptions& with,
                         const double* weights = nullptr, bool integral = false) {
      print(prefix + " " + variant, [&](Hash& hash) {
        criterion::Targets targets = train().targets(kind);
        targets.weights = weights;
        targets.integral_weights = integral;
        fit_tree(hash, table, queries, targets, with);
      });
    };
    run("presorted", options);
    run("whole weights", options, train().weights.data(), true);
    run("weights", options, train().fractions.data());
    tree::GrowOptions sampled = options;
    sampled.max_features = 3;
    run("sampled", sampled);
    run("sampled weights", sampled, train().fractions.data());
    sampled.coarse = sampled.narrow_thresholds = true;
    run("sampled coarse", sampled);
    tree::GrowOptions random = options;
    random.random_splits = true;
    run("random", random);
    random.max_features = 2;
    run("random sampled", random, train().weights.data(), true);
    tree::GrowOptions best_first = options;
    best_first.max_leaf_nodes = 20;
    run("best first", best_first);
    tree::GrowOptions monotonic = options;
    monotonic.monotonic_cst = {1, 0, -1, 0, 0, 1, 0, 0};
    if (!criterion::is_classification(kind)) run("monotonic", monotonic);
    print(prefix + " float32", [&](Hash& hash) {
      fit_tree(hash, train().narrow_table(), test().narrow_table(), train().targets(kind), options);
    });
    if (!criterion::is_classification(kind)) {
      print(prefix + " two outputs", [&](Hash& hash) {
        std::vector<double> values = train().two;
        for (double& value : values) value += 20;  // Poisson deviance needs positive targets
        criterion::Targets targets = train().targets(kind);
        targets.n_outputs = 2;
        targets.values = values.data();
        fit_tree(hash, table, queries, targets, options);
      });
    }
  }
}

}  // namespace bits
