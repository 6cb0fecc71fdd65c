// Nodes of a growing tree.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "spinney/common/types.h"
#include "spinney/criterion/criterion.h"

namespace spinney::tree {

// A node's entries of one column: [begin, end) of the column's entries. A column that is constant
// in a node has no segment there or in its descendants.
struct Segment {
  std::int32_t feature;
  common::Row begin;
  common::Row end;
};

struct Node {
  common::Row begin = 0;  // rows [begin, end) of the search's list
  common::Row end = 0;
  std::int64_t depth = 0;
  std::uint64_t key = 0;  // identifies the node by its path, for random numbers
  double impurity = 0;
  double lower = -std::numeric_limits<double>::infinity();
  double upper = std::numeric_limits<double>::infinity();
  common::NodeIndex parent = -1;
  bool is_left = false;
  bool terminal = false;
  std::vector<double> stat;
  std::vector<Segment> segments;
  // Searches without segments: one bit per column that is constant in this node and therefore in
  // its descendants; empty if there is none. Tables wider than max_tracked do not use it.
  std::vector<std::uint64_t> constants;

  static constexpr std::size_t max_tracked = 4096;
  bool is_constant(std::size_t feature) const {
    return !constants.empty() && ((constants[feature / 64] >> (feature % 64)) & 1) != 0;
  }
  void mark_constant(std::size_t feature, std::size_t n_features) {
    if (n_features > max_tracked) return;
    if (constants.empty()) constants.resize((n_features + 63) / 64);
    constants[feature / 64] |= std::uint64_t{1} << (feature % 64);
  }

  common::Row n_rows() const { return end - begin; }
  double weight() const { return stat[0]; }
  criterion::NodeView view() const { return {n_rows(), stat.data(), lower, upper}; }
};

// The stack of depth-first growth. Its elements are reused, so that their arrays are not allocated
// for every node.
class NodeStack {
 public:
  bool empty() const { return size_ == 0; }
  void push(Node&& node) {
    if (size_ == nodes_.size()) nodes_.emplace_back();
    std::swap(nodes_[size_++], node);
  }
  void pop(Node& out) { std::swap(out, nodes_[--size_]); }

 private:
  std::vector<Node> nodes_;
  std::size_t size_ = 0;
};

}  // namespace spinney::tree
