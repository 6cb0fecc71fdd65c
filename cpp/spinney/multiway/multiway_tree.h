// A tree whose nodes have any number of branches (ID3, C4.5). A row with a missing value follows
// all branches, with weights in proportion to the training rows.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "spinney/common/types.h"
#include "spinney/forest/tree.h"
#include "spinney/table/table.h"

namespace spinney::multiway {

struct MultiwayNode {
  std::int32_t feature = forest::no_feature;
  double threshold =
      std::numeric_limits<double>::quiet_NaN();  // numeric: x <= threshold is branch 0
  std::vector<std::int32_t> branch_of;           // categorical: branch by code, −1: none
  std::vector<common::NodeIndex> children;       // by branch
  std::vector<double> shares;     // fraction of the rows without missing value, by branch
  std::vector<double> counts;     // class weights
  std::vector<double> fractions;  // class fractions; the parent's if no row reaches the node
  double weight = 0;
  std::int64_t n_rows = 0;  // rows that reach the node, with any weight

  bool is_leaf() const { return children.empty(); }
  void make_leaf() {
    feature = forest::no_feature;
    threshold = std::numeric_limits<double>::quiet_NaN();
    branch_of.clear();
    children.clear();
    shares.clear();
  }
  double majority_weight() const {
    double largest = 0;
    for (const double count : counts) largest = count > largest ? count : largest;
    return largest;
  }
};

struct MultiwayTree {
  std::size_t n_classes = 0;
  // Whether a missing category is a category of its own. If so, a node predicts itself for
  // categories without a branch; otherwise such rows follow all branches.
  bool missing_is_category = false;
  std::vector<MultiwayNode> nodes;  // parents before their children

  // Sorts nodes in pre-order, removes unreachable nodes and computes the class fractions.
  void tidy();
};

// out[row * n_classes + k] = the probability of class k.
void predict(const MultiwayTree& tree, const table::Table& table, int n_threads, double* out);

}  // namespace spinney::multiway
