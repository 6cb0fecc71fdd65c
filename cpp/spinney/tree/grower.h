// Grows one tree, depth-first or best-first, within limits and monotonic constraints. A Search
// finds the splits: presorted (all columns, sorted once), sampled (a random subset of columns,
// sorted at each node) or random (random thresholds).
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "spinney/common/types.h"
#include "spinney/common/watch.h"
#include "spinney/criterion/criterion.h"
#include "spinney/forest/tree.h"
#include "spinney/table/table.h"

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
  std::int64_t max_features = 0;    // 0: all features
  std::int64_t max_leaf_nodes = 0;  // 0: no limit, depth-first; otherwise best-first
  double min_impurity_decrease = 0;
  std::vector<std::int8_t> monotonic_cst;  // empty, or −1, 0 or 1 per feature
  std::vector<std::int32_t> features;      // features of this tree; empty: all
  // By feature: the rank of each code, missing last, if the whole tree uses one order of the
  // categories; empty for other features. Null: every node computes its own order.
  const std::vector<std::vector<common::Code>>* category_ranks = nullptr;
  // Search large nodes by histogram first, then exactly next to the best cut. For forests.
  bool coarse = false;
  // Round thresholds to float32 where the rounded threshold gives the same partition of the rows.
  bool narrow_thresholds = false;
  std::uint64_t seed = 0;
  int n_threads = 1;

  // Throws InputError if an option is out of range.
  void check() const;
};

forest::Tree grow_tree(const table::Table& table, const criterion::Targets& targets,
                       const GrowOptions& options, common::Watch& watch);

// Buffers that a thread reuses from tree to tree, and the last tree.
struct TreeScratch {
  TreeScratch();
  ~TreeScratch();
  TreeScratch(TreeScratch&&) noexcept;

  std::unique_ptr<Worker> worker;
  forest::Tree tree;              // the last tree
  std::vector<common::Row> rows;  // its rows, by leaf from left to right
};

// Grows one of many trees on the same table and stores it in `scratch`. Presorted: all columns are
// searched, and trees differ only in the weights of the targets.
void grow_tree(const PresortedTable& presorted, const criterion::Targets& targets,
               const GrowOptions& options, common::Watch& watch, TreeScratch& scratch);
void grow_tree(const PreparedTable& prepared, const criterion::Targets& targets,
               const GrowOptions& options, common::Watch& watch, TreeScratch& scratch);

}  // namespace spinney::tree
