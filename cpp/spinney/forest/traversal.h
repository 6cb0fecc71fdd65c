// The side that a row takes at a split, and the leaf that it reaches. All traversals use these
// functions; serving/block_traversal.h sends blocks of rows through a tree.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "spinney/common/dispatch.h"
#include "spinney/forest/compact_tree.h"
#include "spinney/forest/tree.h"

namespace spinney::forest {

// The side of a value at a numeric split: 0 left, 1 right. The side of a row is unpredictable, so
// this has no branch. `may_miss` false: the value is not NaN.
template <bool may_miss, class Value, class Threshold>
SPINNEY_INLINE std::uint32_t numeric_side(Value value, Threshold threshold,
                                          std::uint32_t missing_right) {
  auto right = static_cast<std::uint32_t>(value > threshold);
  if constexpr (may_miss) right |= static_cast<std::uint32_t>(value != value) & missing_right;
  return right;
}

// Whether a set of categories contains a code.
inline bool has_category(const std::uint32_t* categories, std::size_t code) {
  return ((categories[code / 32] >> (code % 32)) & 1) != 0;
}

// Whether a value goes left. `categories`: the set of a categorical split, or null. The value is
// NaN if it is missing; a code must be within the set.
SPINNEY_INLINE bool goes_left(double value, double threshold, bool missing_left,
                              const std::uint32_t* categories) {
  if (categories == nullptr)
    return numeric_side<true>(value, threshold, missing_left ? 0U : 1U) == 0;
  return std::isnan(value) ? missing_left
                           : has_category(categories, static_cast<std::size_t>(value));
}

SPINNEY_INLINE bool goes_left(const CompactTree& tree, std::size_t node, double value) {
  const CompactNode& split = tree.nodes[node];
  return goes_left(value, tree.threshold_of(node), split.missing_left(), tree.categories_of(node));
}

inline bool goes_left(const Tree& tree, std::size_t node, double value) {
  const bool is_categorical = tree.category_start[node] != no_categories;
  return goes_left(
      value, tree.threshold[node], tree.missing_left[node] != 0,
      is_categorical ? tree.category_bits.data() + tree.category_start[node] : nullptr);
}

// The child of a node for a row with this value: a node, or ~leaf.
SPINNEY_INLINE std::int32_t child_of(const CompactTree& tree, std::size_t node, double value) {
  return tree.nodes[node].child[goes_left(tree, node, value) ? 0 : 1];
}

// The leaf that a row reaches; value_of(feature) returns its values.
template <class ValueOf>
SPINNEY_INLINE std::size_t find_leaf(const CompactTree& tree, const ValueOf& value_of) {
  std::int32_t at = tree.root();
  while (at >= 0) {
    const auto node = static_cast<std::size_t>(at);
    at = child_of(tree, node, value_of(tree.nodes[node].feature_index()));
  }
  return static_cast<std::size_t>(~at);
}

// The node of the leaf that a row reaches.
template <class ValueOf>
std::size_t find_leaf(const Tree& tree, const ValueOf& value_of) {
  std::size_t node = 0;
  while (tree.left[node] != no_child) {
    const double value = value_of(static_cast<std::size_t>(tree.feature[node]));
    node =
        static_cast<std::size_t>(goes_left(tree, node, value) ? tree.left[node] : tree.right[node]);
  }
  return node;
}

}  // namespace spinney::forest
