// Growth of random forests: each tree has its own seed. Out-of-bag rows are evaluated as soon as a
// tree is grown.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/common/random.h"
#include "spinney/common/watch.h"
#include "spinney/forest/forest.h"
#include "spinney/tree/grower.h"
#include "spinney/tree/prepared_table.h"

namespace spinney::ensemble {

enum class Importance : std::uint8_t { none, corrected, permutation };

struct ForestOptions {
  // Its seed is the forest's: each tree derives its own. min_weight_leaf is a fraction of the
  // tree's weight.
  tree::GrowOptions tree;
  const std::uint64_t* tree_seeds = nullptr;  // of each tree, if they are given
  std::size_t first_tree = 0;
  std::size_t n_trees = 1;
  int n_threads = 1;
  // Rows of each tree: drawn, with replacement or without …
  bool bootstrap = false;
  bool replace = true;
  std::size_t n_drawn = 0;
  const double* draw_weights = nullptr;
  // … or given, [tree][row], how often each counts.
  const std::uint32_t* counts = nullptr;
  bool balance_classes = false;  // in each sample, classes weigh the same
  // Features of each tree, one list after another, if it may not use all.
  const std::int32_t* features = nullptr;
  std::size_t n_features_per_tree = 0;
  double ccp_alpha = 0;  // cost-complexity pruning of each tree, by impurity
  bool hard_votes = false;
  bool out_of_bag = false;            // evaluate out-of-bag rows
  std::vector<common::Row> followed;  // … only these rows; empty: all
  bool keep_members = false;          // store the rows of leaves, for quantiles
  std::vector<double> centre;         // of the targets of each output: squares are taken around it
  Importance importance = Importance::none;

  // Throws InputError if a value is outside its range.
  void check() const;
};

// 31 bits, so that it can be the tree's random_state.
constexpr std::uint64_t seed_of_tree(std::uint64_t forest_seed, std::size_t tree) {
  return common::combine(forest_seed, tree) >> 33;
}

inline std::uint64_t seed_of(const ForestOptions& options, std::size_t index) {
  return options.tree_seeds != nullptr
             ? options.tree_seeds[index]
             : seed_of_tree(options.tree.seed, options.first_tree + index);
}

// Results of out-of-bag rows. A continued fit adds to them.
struct OutOfBag {
  std::vector<double> sums;            // [row][width] over the trees that did not train on the row
  std::vector<double> squares;         // regression: the same, of squares around the centre
  std::vector<std::uint32_t> n_trees;  // how many these are
  std::vector<double> curve;           // score of the first 1, 2, … trees: accuracy, or R²
  std::vector<double> importances;     // [tree][feature]
};

// Appends n_trees trees to the forest.
void grow_forest(const tree::PreparedTable& prepared, const criterion::Targets& targets,
                 const ForestOptions& options, forest::Forest& forest, OutOfBag& out_of_bag,
                 common::Watch& watch);

// The rows drawn for a tree, in the order drawn.
std::vector<std::int64_t> draw_bag(std::size_t n_rows, std::size_t n_drawn, bool replace,
                                   const double* draw_weights, std::uint64_t tree_seed);

}  // namespace spinney::ensemble
