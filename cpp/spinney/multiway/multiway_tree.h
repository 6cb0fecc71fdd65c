// A tree whose nodes have any number of branches, as ID3 and C4.5 grow them. Rows that miss the
// value a node asks for go down all branches, in parts.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "spinney/common/types.h"
#include "spinney/table/table.h"
#include "spinney/tree/tree.h"

namespace spinney::multiway {

struct MultiwayNode {
  std::int32_t feature = tree::no_feature;
  double threshold = std::numeric_limits<double>::quiet_NaN();  // of a number: x <= it is branch 0
  std::vector<std::int32_t> branch_of;      // of a category: the branch of each code, -1 for none
  std::vector<common::NodeIndex> children;  // by branch
  std::vector<double> shares;               // of the rows that do not miss the value, by branch
  std::vector<double> counts;               // weight by class
  std::vector<double> fractions;            // of the classes; a node without rows has its parent's
  double weight = 0;
  std::int64_t n_rows = 0;  // that get here, whole or in part

  bool is_leaf() const { return children.empty(); }
  void make_leaf() {
    feature = tree::no_feature;
    threshold = std::numeric_limits<double>::quiet_NaN();
    branch_of.clear();
    children.clear();
    shares.clear();
  }
  double most() const {
    double largest = 0;
    for (const double count : counts) largest = count > largest ? count : largest;
    return largest;
  }
};

struct MultiwayTree {
  std::size_t n_classes = 0;
  // Of a row that misses a value: it goes on as a category of its own. Where a node knows no branch
  // for a category, the node answers; else such rows go down all branches.
  bool missing_is_category = false;
  std::vector<MultiwayNode> nodes;  // parents before their children

  // Nodes in pre-order, without those that nothing leads to, and everyone's fractions.
  void tidy();
};

// out[row * n_classes + k] = the probability of class k.
void predict(const MultiwayTree& tree, const table::Table& table, int n_threads, double* out);

}  // namespace spinney::multiway
