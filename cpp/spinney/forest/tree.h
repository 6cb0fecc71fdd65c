// A fitted tree: parallel arrays, indexed by node.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/common/types.h"

namespace spinney::forest {

constexpr common::NodeIndex no_child = -1;
constexpr std::int32_t no_feature = -2;  // marks a leaf, as in scikit-learn
constexpr std::int64_t no_categories = -1;

struct Tree {
  std::size_t value_size = 1;  // numbers per node: outputs × classes
  std::vector<common::NodeIndex> left;
  std::vector<common::NodeIndex> right;
  std::vector<std::int32_t> feature;
  std::vector<double> threshold;  // x <= threshold goes left; NaN: categorical split
  std::vector<std::uint8_t> missing_left;
  std::vector<double> impurity;
  std::vector<std::int64_t> n_rows;
  std::vector<double> weight;
  std::vector<double> value;
  // A categorical split has two bit sets of ⌈n_categories/32⌉ words each at category_start: the
  // categories that go left, and those present in the node.
  std::vector<std::int64_t> category_start;
  std::vector<std::uint32_t> category_bits;
  std::int32_t max_depth = 0;

  std::size_t size() const { return left.size(); }

  // Removes all nodes; keeps the memory.
  void clear() {
    left.clear();
    right.clear();
    feature.clear();
    threshold.clear();
    missing_left.clear();
    impurity.clear();
    n_rows.clear();
    weight.clear();
    value.clear();
    category_start.clear();
    category_bits.clear();
    max_depth = 0;
  }

  common::NodeIndex add_leaf(double node_impurity, common::Row node_rows, double node_weight) {
    left.push_back(no_child);
    right.push_back(no_child);
    feature.push_back(no_feature);
    threshold.push_back(-2.0);
    missing_left.push_back(0);
    impurity.push_back(node_impurity);
    n_rows.push_back(node_rows);
    weight.push_back(node_weight);
    value.resize(value.size() + value_size);
    category_start.push_back(no_categories);
    return static_cast<common::NodeIndex>(left.size() - 1);
  }

  // Appends a copy of one node of another tree, without its children.
  common::NodeIndex copy_node(const Tree& from, std::size_t node, std::size_t category_words) {
    const common::NodeIndex at = add_leaf(from.impurity[node], 0, from.weight[node]);
    const auto to = static_cast<std::size_t>(at);
    n_rows[to] = from.n_rows[node];
    feature[to] = from.feature[node];
    threshold[to] = from.threshold[node];
    missing_left[to] = from.missing_left[node];
    for (std::size_t k = 0; k < value_size; ++k) {
      value[to * value_size + k] = from.value[node * value_size + k];
    }
    if (from.category_start[node] != no_categories) {
      category_start[to] = static_cast<std::int64_t>(category_bits.size());
      const auto start = static_cast<std::size_t>(from.category_start[node]);
      for (std::size_t word = 0; word < 2 * category_words; ++word) {
        category_bits.push_back(from.category_bits[start + word]);
      }
    }
    return at;
  }
};

// Adds a category to a bit set.
inline void mark_category(std::uint32_t* bits, common::Code code) {
  bits[code / 32] |= std::uint32_t{1} << (code % 32);
}

constexpr std::size_t words_for(std::int64_t n_categories) {
  return static_cast<std::size_t>((n_categories + 31) / 32);
}

}  // namespace spinney::forest
