// Grows one tree. The frontier (which node is next), the limits and the constraints are here; how a
// node's splits are searched is the business of a Search: over columns sorted once (all columns),
// over columns gathered and sorted in the node (a random subset of columns), or random thresholds.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "spinney/common/types.h"
#include "spinney/common/watch.h"
#include "spinney/criterion/criterion.h"
#include "spinney/table/table.h"
#include "spinney/tree/tree.h"

namespace spinney::tree {

struct PreparedTable;
struct PresortedTable;
struct Worker;

struct GrowOptions {
  criterion::CriterionKind criterion = criterion::CriterionKind::gini;
  bool random_splits = false;
  std::int64_t max_depth = std::numeric_limits<std::int64_t>::max();
  std::int64_t min_samples_split = 2;
  std::int64_t min_samples_leaf = 1;
  double min_weight_leaf = 0;
  std::int64_t max_features = 0;    // 0: all of them
  std::int64_t max_leaf_nodes = 0;  // 0: no limit, depth first; else best first
  double min_impurity_decrease = 0;
  std::vector<std::int8_t> monotonic;  // empty, or one sign per feature
  std::vector<std::int32_t> features;  // those that the tree may use; empty: all
  // Of a feature whose categories are divided in one order throughout the tree: the place of each
  // code in it, missing last; empty for others. Null: each node orders for itself.
  const std::vector<std::vector<common::Code>>* category_ranks = nullptr;
  // Count large nodes in cells and be exact only beside the best cut. For forests.
  bool coarse = false;
  // Round thresholds to float32 where that still divides the node's rows in the same way.
  bool narrow_thresholds = false;
  std::uint64_t seed = 0;
  int n_threads = 1;
};

Tree grow_tree(const table::Table& table, const criterion::Targets& targets,
               const GrowOptions& options, common::Watch& watch);

// What a thread that grows one tree after another uses again.
struct TreeScratch {
  TreeScratch();
  ~TreeScratch();
  TreeScratch(TreeScratch&&) noexcept;

  std::unique_ptr<Worker> worker;
  Tree tree;                      // the tree grown last
  std::vector<common::Row> rows;  // its rows, leaf by leaf from left to right
};

// One of many trees on the same table, left in `scratch`. Presorted: all columns are looked at, and
// the targets differ from those of the other trees in their weights only.
void grow_tree(const PresortedTable& presorted, const criterion::Targets& targets,
               const GrowOptions& options, common::Watch& watch, TreeScratch& scratch);
void grow_tree(const PreparedTable& prepared, const criterion::Targets& targets,
               const GrowOptions& options, common::Watch& watch, TreeScratch& scratch);

}  // namespace spinney::tree
