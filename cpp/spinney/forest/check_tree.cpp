#include "spinney/forest/check_tree.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "spinney/common/check.h"

namespace spinney::forest {

namespace {

void require_of(const char* what, bool holds) {
  if (holds) return;
  throw common::InputError("the arrays of a " + std::string(what) + " do not fit together");
}

}  // namespace

template <class Index>
void check_tree(const SplitArrays<Index>& tree,
                std::optional<std::span<const std::int32_t>> n_categories) {
  const auto require = [](bool holds) { require_of("tree", holds); };
  const std::size_t n = tree.left.size();
  require(n > 0 && n < (std::size_t{1} << 31) && tree.right.size() == n &&
          tree.feature.size() == n && tree.threshold.size() == n && tree.missing_left.size() == n &&
          tree.category_start.size() == n);
  const std::size_t max_features = n_categories ? n_categories->size() : CompactNode::feature_mask;
  std::vector<bool> reached(n);
  for (std::size_t node = 0; node < n; ++node) {
    require((tree.left[node] < 0) == (tree.right[node] < 0));
    if (tree.left[node] < 0) continue;
    for (const Index child : {tree.left[node], tree.right[node]}) {
      // A child comes after its parent and has one parent: all paths end, and there is one to each.
      const auto at = static_cast<std::size_t>(child);
      require(at > node && at < n && !reached[at]);
      reached[at] = true;
    }
    require(tree.feature[node] >= 0 && static_cast<std::size_t>(tree.feature[node]) < max_features);
    if (tree.category_start[node] == no_categories) continue;
    std::size_t n_words = 1;
    if (n_categories) {
      n_words = words_for((*n_categories)[static_cast<std::size_t>(tree.feature[node])]);
    }
    const auto start = static_cast<std::size_t>(tree.category_start[node]);
    require(n_words > 0 && start < tree.category_bits.size() &&
            n_words <= tree.category_bits.size() - start);
  }
}

template void check_tree(const SplitArrays<std::int32_t>&,
                         std::optional<std::span<const std::int32_t>>);
template void check_tree(const SplitArrays<std::int64_t>&,
                         std::optional<std::span<const std::int32_t>>);

void check_tree(const CompactTree& tree, const LeafShape& shape,
                std::span<const std::int32_t> n_categories) {
  const auto require = [](bool holds) { require_of("forest", holds); };
  const std::size_t n_nodes = tree.nodes.size();
  const std::size_t n_leaves = tree.n_leaves();
  const std::size_t width = shape.width();
  require(n_leaves == n_nodes + 1);
  require(tree.thresholds.empty() || tree.thresholds.size() == n_nodes);
  require(tree.leaf_weight.empty() || tree.leaf_weight.size() == n_leaves);
  require(tree.leaf_weight_exact.empty() || tree.leaf_weight_exact.size() == n_leaves);
  require(tree.leaf_impurity.empty() || tree.leaf_impurity.size() == n_leaves);
  require(tree.members.empty() ||
          (tree.member_start.size() == n_leaves + 1 &&
           tree.member_start[n_leaves] == tree.members.size() &&
           std::is_sorted(tree.member_start.begin(), tree.member_start.end())));
  if (shape.inner_values) {
    require(tree.inner_value.size() == n_nodes * width && tree.inner_impurity.size() == n_nodes);
  }
  if (shape.one_label()) {
    require(tree.leaf_class.size() == n_leaves);
    const std::size_t n_held =
        tree.mixed_counts.empty() ? tree.values.size() : tree.mixed_counts.size();
    const std::size_t n_mixed = n_held / width;
    for (const std::uint32_t label : tree.leaf_class) require(label < width + n_mixed);
  } else {
    require(tree.values.size() == n_leaves * width);
  }
  // With two paths to one node, the number of paths could grow exponentially.
  std::vector<std::uint8_t> reached(n_nodes + n_leaves);
  const auto reach = [&](std::size_t position) {
    require(reached[position] == 0);
    reached[position] = 1;
  };
  for (std::size_t at = 0; at < n_nodes; ++at) {
    const CompactNode& node = tree.nodes[at];
    for (const std::int32_t child : {node.child[0], node.child[1]}) {
      if (child >= 0) {
        // A child comes after its parent, so there are no cycles.
        require(static_cast<std::size_t>(child) > at && static_cast<std::size_t>(child) < n_nodes);
        reach(static_cast<std::size_t>(child));
      } else {
        require(static_cast<std::size_t>(~child) < n_leaves);
        reach(n_nodes + static_cast<std::size_t>(~child));
      }
    }
    const std::size_t feature = node.feature_index();
    require(feature < n_categories.size());
    if (node.is_categorical()) {
      const std::size_t start = std::bit_cast<std::uint32_t>(node.threshold);
      require(n_categories[feature] > 0 &&
              start + 2 * words_for(n_categories[feature]) <= tree.category_bits.size());
    } else {  // scorers sort the thresholds
      require(!std::isnan(tree.threshold_of(at)));
    }
  }
}

void append_tree(const TreeArrays& arrays, Forest& forest) {
  const TreeView& splits = arrays.splits;
  check_tree(splits, forest.n_categories);
  const std::size_t n = splits.left.size();
  Tree tree;
  tree.value_size = forest.shape.width();
  require_of("tree", arrays.impurity.size() == n && arrays.n_node_samples.size() == n &&
                         arrays.weighted_n_node_samples.size() == n &&
                         arrays.value.size() == n * tree.value_size);
  for (std::size_t node = 0; node < n; ++node) {
    const bool is_leaf = splits.left[node] < 0;
    tree.left.push_back(is_leaf ? no_child : static_cast<common::NodeIndex>(splits.left[node]));
    tree.right.push_back(is_leaf ? no_child : static_cast<common::NodeIndex>(splits.right[node]));
    tree.feature.push_back(static_cast<std::int32_t>(splits.feature[node]));
    if (is_leaf || splits.category_start[node] == no_categories) continue;
    // A tree has two sets per split: the categories that go left, and those present in the node.
    const std::size_t n_words =
        2 * words_for(forest.n_categories[static_cast<std::size_t>(splits.feature[node])]);
    require_of("tree", static_cast<std::size_t>(splits.category_start[node]) + n_words <=
                           splits.category_bits.size());
  }
  tree.threshold.assign(splits.threshold.begin(), splits.threshold.end());
  tree.missing_left.assign(splits.missing_left.begin(), splits.missing_left.end());
  tree.category_start.assign(splits.category_start.begin(), splits.category_start.end());
  tree.category_bits.assign(splits.category_bits.begin(), splits.category_bits.end());
  tree.impurity.assign(arrays.impurity.begin(), arrays.impurity.end());
  tree.n_rows.assign(arrays.n_node_samples.begin(), arrays.n_node_samples.end());
  tree.weight.assign(arrays.weighted_n_node_samples.begin(), arrays.weighted_n_node_samples.end());
  tree.value.assign(arrays.value.begin(), arrays.value.end());
  CompactTree compact_tree = compact(tree, forest.shape, forest.n_categories);
  check_tree(compact_tree, forest.shape, forest.n_categories);
  forest.trees.push_back(std::move(compact_tree));
}

}  // namespace spinney::forest
