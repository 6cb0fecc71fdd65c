// A node while the tree grows.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "spinney/common/types.h"
#include "spinney/criterion/criterion.h"

namespace spinney::tree {

// The entries of one column that belong to a node: [begin, end) of the column's entries. Columns
// that are constant in a node have no segment there, nor in any node below it.
struct Segment {
  std::int32_t feature;
  common::Row begin;
  common::Row end;
};

struct Node {
  common::Row begin = 0;  // its rows: [begin, end) of the grower's list
  common::Row end = 0;
  std::int64_t depth = 0;
  std::uint64_t key = 0;  // names the node by its path, whatever the order of growth
  double impurity = 0;
  double lower = -std::numeric_limits<double>::infinity();
  double upper = std::numeric_limits<double>::infinity();
  common::NodeIndex parent = -1;
  bool is_left = false;
  bool terminal = false;
  std::vector<double> stat;
  std::vector<Segment> segments;
  // Searches without segments: one bit for each column that is known to be constant here, and so
  // below; empty while none is. Very wide tables do without.
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

// The nodes that wait during depth-first growth. Places are reused, so that a node's arrays are
// allocated once and not for every node.
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
