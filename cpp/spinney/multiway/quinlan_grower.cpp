#include "spinney/multiway/quinlan_grower.h"

#include <algorithm>
#include <memory>

#include "spinney/common/check.h"
#include "spinney/common/parallel.h"
#include "spinney/multiway/error_pruner.h"

namespace spinney::multiway {

using common::parallel_for;
using common::worthwhile_threads;

namespace {

constexpr double epsilon = 1e-3;  // as in C4.5
// Limits the recursion of pruning.
constexpr std::int64_t depth_limit = 5000;

class QuinlanGrower {
 public:
  QuinlanGrower(const QuinlanRows& rows, const QuinlanOptions& options, common::Watch& watch)
      : rows_(rows),
        options_(options),
        watch_(watch),
        scratches_(static_cast<std::size_t>(options.n_threads)) {
    tree_.n_classes = rows.n_classes;
    tree_.missing_is_category = options.missing_is_category;
    // As in C4.5, the average gain excludes columns with very many categories, unless there are no
    // other columns.
    double all = 0;
    for (const double weight : rows.items.weights) all += weight;
    const double max_categories = 0.3 * all;
    for (const QuinlanColumn& column : rows.columns) {
      counts_for_average_.push_back(!column.categorical ||
                                    static_cast<double>(column.n_branch_codes) < max_categories);
    }
    if (std::find(counts_for_average_.begin(), counts_for_average_.end(), true) ==
        counts_for_average_.end()) {
      counts_for_average_.assign(rows.columns.size(), true);
    }
  }

  MultiwayTree grow() {
    struct Open {
      std::size_t node;
      std::int64_t depth;
      QuinlanItems items;
      std::vector<bool> used;  // categorical columns that an ancestor splits on
    };
    std::vector<Open> stack;
    tree_.nodes.emplace_back();
    stack.push_back({0, 0, rows_.items, std::vector<bool>(rows_.columns.size())});
    while (!stack.empty()) {
      Open open = std::move(stack.back());
      stack.pop_back();
      rows_.count(open.items, tree_.nodes[open.node]);
      watch_.poll(1000 + 20 * open.items.size() * rows_.columns.size());
      if (!may_split(tree_.nodes[open.node], open.depth)) {
        watch_.advance(open.items.size());
        continue;
      }
      std::size_t feature = 0;
      QuinlanSplit split = best_split(tree_.nodes[open.node], open.items, open.used, feature);
      if (!split.found) {
        watch_.advance(open.items.size());
        continue;
      }
      const std::size_t first_child = tree_.nodes.size();
      tree_.nodes.resize(first_child + split.n_branches);
      MultiwayNode& node = tree_.nodes[open.node];
      node.feature = static_cast<std::int32_t>(feature);
      if (rows_.columns[feature].categorical) {
        node.branch_of = std::move(split.branch_of);
        open.used[feature] = true;
      } else {
        node.threshold = split.threshold;
      }
      for (std::size_t b = 0; b < split.n_branches; ++b) {
        node.children.push_back(static_cast<common::NodeIndex>(first_child + b));
      }
      std::vector<QuinlanItems> branches = rows_.partition(open.items, node);
      open.items = {};
      for (std::size_t b = 0; b < branches.size(); ++b) {
        if (branches[b].size() == 0) {
          rows_.count(branches[b], tree_.nodes[first_child + b]);
          continue;
        }
        stack.push_back({first_child + b, open.depth + 1, std::move(branches[b]), open.used});
      }
    }
    if (options_.collapse) collapse();
    return std::move(tree_);
  }

  std::vector<QuinlanSplit> root_splits() {
    MultiwayNode root;
    rows_.count(rows_.items, root);
    return all_splits(root, rows_.items, std::vector<bool>(rows_.columns.size()));
  }

 private:
  bool may_split(const MultiwayNode& node, std::int64_t depth) const {
    if (depth >=
        (options_.max_depth > 0 ? std::min(options_.max_depth, depth_limit) : depth_limit)) {
      return false;
    }
    if (node.weight < 2 * options_.min_samples_branch || node.n_rows < 2) return false;
    return node.majority_weight() < node.weight - 1e-9 * node.weight;
  }

  std::vector<QuinlanSplit> all_splits(const MultiwayNode& node, const QuinlanItems& items,
                                       const std::vector<bool>& used) {
    std::vector<QuinlanSplit> splits(rows_.columns.size());
    const double work = 20.0 * static_cast<double>(items.size() * splits.size());
    parallel_for(splits.size(), worthwhile_threads(work, options_.n_threads),
                 [&](std::size_t f, int thread) {
                   if (used[f]) return;
                   splits[f] = find_split(rows_, items, node, f, options_,
                                          scratches_[static_cast<std::size_t>(thread)]);
                 });
    return splits;
  }

  QuinlanSplit best_split(const MultiwayNode& node, const QuinlanItems& items,
                          const std::vector<bool>& used, std::size_t& feature) {
    std::vector<QuinlanSplit> splits = all_splits(node, items, used);
    double average = 0;
    double n = 0;
    for (std::size_t f = 0; f < splits.size(); ++f) {
      if (!splits[f].found || !counts_for_average_[f]) continue;
      average += splits[f].gain;
      n += 1;
    }
    average = n > 0 ? average / n : 0.0;
    QuinlanSplit best;
    double best_score = options_.gain_ratio ? 0.0 : -1.0;
    for (std::size_t f = 0; f < splits.size(); ++f) {
      const QuinlanSplit& split = splits[f];
      if (!split.found || split.gain < options_.min_gain - 1e-12) continue;
      if (options_.gain_ratio && (split.gain < average - epsilon || split.info <= epsilon))
        continue;
      const double score = options_.gain_ratio ? split.ratio() : split.gain;
      if (score <= best_score + 1e-12) continue;
      best_score = score;
      feature = f;
    }
    if (best_score > (options_.gain_ratio ? 0.0 : -1.0)) best = std::move(splits[feature]);
    return best;
  }

  // Replaces subtrees by leaves if that does not increase the training errors. Children come after
  // their parents.
  void collapse() {
    std::vector<double> errors(tree_.nodes.size());
    for (std::size_t i = tree_.nodes.size(); i-- > 0;) {
      MultiwayNode& node = tree_.nodes[i];
      const double leaf_errors = node.weight - node.majority_weight();
      for (const common::NodeIndex child : node.children) {
        errors[i] += errors[static_cast<std::size_t>(child)];
      }
      if (node.is_leaf() || errors[i] >= leaf_errors - epsilon) {
        node.make_leaf();
        errors[i] = leaf_errors;
      }
    }
  }

  const QuinlanRows& rows_;
  const QuinlanOptions& options_;
  common::Watch& watch_;
  std::vector<QuinlanScratch> scratches_;
  std::vector<bool> counts_for_average_;
  MultiwayTree tree_;
};

}  // namespace

MultiwayTree grow_quinlan_tree(const table::Table& table, const criterion::Targets& targets,
                               const QuinlanOptions& options, common::Watch& watch) {
  if (targets.n_outputs != 1 || targets.labels == nullptr) {
    throw common::InputError("ID3 and C4.5 trees need exactly one classification target");
  }
  const QuinlanRows rows(table, targets, options.missing_is_category, options.n_threads);
  MultiwayTree tree = QuinlanGrower(rows, options, watch).grow();
  if (options.prune)
    prune_by_errors(rows, options.confidence, options.subtree_raising, watch, tree);
  tree.tidy();
  return tree;
}

std::vector<QuinlanSplit> find_root_splits(const table::Table& table,
                                           const criterion::Targets& targets,
                                           const QuinlanOptions& options) {
  const QuinlanRows rows(table, targets, options.missing_is_category, options.n_threads);
  common::Watch watch;
  return QuinlanGrower(rows, options, watch).root_splits();
}

}  // namespace spinney::multiway
