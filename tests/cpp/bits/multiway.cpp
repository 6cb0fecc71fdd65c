#include <string>

#include "bits.h"
#include "spinney/multiway/error_pruner.h"
#include "spinney/multiway/multiway_tree.h"
#include "spinney/multiway/quinlan_grower.h"

namespace bits {

using namespace spinney;

namespace {

void fit_quinlan(Hash& hash, const Data& data, const multiway::QuinlanOptions& options) {
  criterion::Targets targets = data.targets(criterion::CriterionKind::gini);
  targets.weights = data.fractions.data();
  common::Watch watch;
  const table::Table table = data.table();
  const multiway::MultiwayTree tree = multiway::grow_quinlan_tree(table, targets, options, watch);
  for (const multiway::MultiwayNode& node : tree.nodes) {
    hash.add(node.feature);
    hash.add(node.threshold);
    hash.add(node.branch_of);
    hash.add(node.children);
    hash.add(node.shares);
    hash.add(node.fractions);
    hash.add(node.weight);
  }
  std::vector<double> probabilities(test().n_rows * tree.n_classes);
  multiway::predict(tree, test().table(), n_threads, probabilities.data());
  hash.add(probabilities);
}

}  // namespace

void print_multiway() {
  multiway::QuinlanOptions options;
  options.n_threads = n_threads;
  for (const bool gain_ratio : {false, true}) {
    for (const bool prune : {false, true}) {
      for (const bool group : {false, true}) {
        multiway::QuinlanOptions with = options;
        with.gain_ratio = gain_ratio;
        with.prune = prune;
        with.group_categories = group;
        print(std::string("multiway ") + (gain_ratio ? "gain_ratio" : "gain") +
                  (prune ? " pruned" : "") + (group ? " grouped" : ""),
              [&](Hash& hash) { fit_quinlan(hash, train(), with); });
      }
    }
  }
  print("multiway extra errors", [](Hash& hash) {
    for (const double confidence : {0.01, 0.25, 0.5, 0.75}) {
      for (const double n : {1.0, 7.0, 100.5, 4000.0}) {
        for (const double e : {0.0, 0.3, 1.0, 6.0, 90.0}) {
          hash.add(multiway::extra_errors(n, e, confidence));
        }
      }
    }
  });
}

}  // namespace bits
