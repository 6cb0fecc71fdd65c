// A fitted tree in compact form: only splits are nodes. Row counts, weights, impurities and values
// of inner nodes are derived from the leaves on demand.
//
// Nodes are in pre-order; a negative child is a leaf, ~child its number. Leaves are numbered from
// left to right. Thresholds are float32 if a float32 lies between the values that the split
// separates, which is nearly always so.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "spinney/common/types.h"
#include "spinney/criterion/criterion.h"
#include "spinney/forest/tree.h"
#include "spinney/forest/tree_array.h"

namespace spinney::forest {

struct CompactNode {
  float threshold;        // categorical split: where its bits begin, as an integer
  std::uint32_t feature;  // with the two flags below
  std::int32_t child[2];  // left, right: selected by an index, without a branch

  static constexpr std::uint32_t missing_left_flag = 1U << 31;
  static constexpr std::uint32_t categorical_flag = 1U << 30;
  static constexpr std::uint32_t feature_mask = categorical_flag - 1;

  std::size_t feature_index() const { return feature & feature_mask; }
  bool missing_left() const { return (feature & missing_left_flag) != 0; }
  bool is_categorical() const { return (feature & categorical_flag) != 0; }
};

// The contents of the leaves, the same for all trees of a forest.
struct LeafShape {
  criterion::CriterionKind criterion = criterion::CriterionKind::squared_error;
  std::vector<std::uint32_t> n_classes;  // classification: per output
  std::size_t n_outputs = 1;
  bool inner_values = false;  // values and impurities of inner nodes do not follow from the leaves

  bool one_label() const { return criterion::is_classification(criterion) && n_outputs == 1; }
  std::size_t width() const {  // numbers per leaf: outputs × classes
    std::size_t most = 1;
    for (const std::uint32_t k : n_classes) most = most < k ? k : most;
    return n_outputs * most;
  }
};

struct CompactTree {
  TreeArray<CompactNode> nodes;
  TreeArray<double> thresholds;  // empty if float32 serves
  TreeArray<std::uint32_t> leaf_rows;
  TreeArray<float> leaf_weight;         // empty if every row counts once …
  TreeArray<double> leaf_weight_exact;  // … and this instead where float32 does not hold them
  // One output of classes: the class of a pure leaf, or n_classes + the number of a mixed leaf.
  TreeArray<std::uint32_t> leaf_class;
  TreeArray<float> mixed_counts;  // class weights of mixed leaves, where float32 holds them
  // Class fractions of mixed leaves where it does not; anything but one output of classes: the
  // values of all leaves.
  TreeArray<double> values;
  TreeArray<double> leaf_impurity;  // regression; empty if all are zero
  TreeArray<double> inner_value;    // where they do not follow from the leaves
  TreeArray<double> inner_impurity;
  TreeArray<std::uint32_t> category_bits;  // as in Tree
  // Rows of the leaves that are not pure, each as often as it was drawn, and where a leaf's begin.
  TreeArray<std::uint32_t> members;
  TreeArray<std::uint32_t> member_start;
  std::shared_ptr<const void> owner;  // of the memory that the arrays view, if they do

  std::size_t n_leaves() const { return leaf_rows.size(); }
  std::int32_t root() const { return nodes.empty() ? ~0 : 0; }
  double threshold_of(std::size_t node) const {
    return thresholds.empty() ? static_cast<double>(nodes[node].threshold) : thresholds[node];
  }
  // The categories that go left, as a bit set; null for a numeric split.
  const std::uint32_t* categories_of(std::size_t node) const {
    if (!nodes[node].is_categorical()) return nullptr;
    return category_bits.data() + std::bit_cast<std::uint32_t>(nodes[node].threshold);
  }
  double weight_of(std::size_t leaf) const {
    if (!leaf_weight.empty()) return static_cast<double>(leaf_weight[leaf]);
    if (!leaf_weight_exact.empty()) return leaf_weight_exact[leaf];
    return static_cast<double>(leaf_rows[leaf]);
  }
};

// n_categories: of each feature, 0 for a numeric one.
CompactTree compact(const Tree& tree, const LeafShape& shape,
                    std::span<const std::int32_t> n_categories);

// The full tree, with nodes in pre-order.
Tree expand(const CompactTree& tree, const LeafShape& shape,
            std::span<const std::int32_t> n_categories);

// The values of a leaf, width() numbers.
void leaf_values(const CompactTree& tree, const LeafShape& shape, std::size_t leaf, double* out);

}  // namespace spinney::forest
