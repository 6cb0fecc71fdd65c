// Checks of trees whose arrays come from a file, a pickle or a caller. Code that reads a checked
// tree does not check indices again.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "spinney/forest/forest.h"
#include "spinney/forest/tree.h"

namespace spinney::forest {

// The splits of a tree. A leaf has negative children.
template <class Index>
struct SplitArrays {
  std::span<const Index> left;
  std::span<const Index> right;
  std::span<const Index> feature;
  std::span<const double> threshold;
  std::span<const std::uint8_t> missing_left;
  std::span<const std::int64_t> category_start;
  std::span<const std::uint32_t> category_bits;
};
using TreeView = SplitArrays<std::int64_t>;

// A tree with its statistics; arrays of scikit-learn's tree_ under the same names.
struct TreeArrays {
  TreeView splits;
  std::span<const double> impurity;
  std::span<const std::int64_t> n_node_samples;
  std::span<const double> weighted_n_node_samples;
  std::span<const double> value;
};

// Throws InputError unless the arrays are one tree: all have one number per node, and each node but
// the root is the child of one earlier node. Each split has a feature and, if it is categorical, a
// set of categories. Without n_categories, the number of features is unlimited, and a set may have
// any size.
template <class Index>
void check_tree(const SplitArrays<Index>& tree,
                std::optional<std::span<const std::int32_t>> n_categories = {});

// Throws InputError unless every index of the tree is within bounds.
void check_tree(const CompactTree& tree, const LeafShape& shape,
                std::span<const std::int32_t> n_categories);

// Checks a tree and appends it.
void append_tree(const TreeArrays& arrays, Forest& forest);

}  // namespace spinney::forest
