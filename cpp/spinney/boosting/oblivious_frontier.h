// Oblivious growth: all leaves of a level have the same split.
#pragma once

#include <concepts>
#include <vector>

#include "spinney/boosting/growth.h"

namespace spinney::boosting {

// Finds one split for several leaves, and returns those that it may divide, with their `split`.
template <class S, class Node>
concept LevelSearch = requires(S& search, const std::vector<Node*>& leaves, std::size_t depth) {
  { search.split_level(leaves, depth) } -> std::same_as<std::vector<Node*>>;
};

template <class Node, class Tree, LevelSearch<Node> Search>
class ObliviousFrontier {
 public:
  ObliviousFrontier(Tree& tree, Search& search, std::size_t max_depth)
      : tree_(tree), search_(search), max_depth_(max_depth) {}

  void start(Node& root) { tree_.add_leaf(root); }

  std::vector<Node*> take() {
    if (depth_ == max_depth_ || !any_split_) return {};
    any_split_ = false;
    std::vector<Node*> leaves;
    for (Node& node : tree_.nodes()) {
      if (node.is_leaf) leaves.push_back(&node);
    }
    const std::vector<Node*> taken = search_.split_level(leaves, depth_);
    ++depth_;
    for (Node* const node : taken) {
      tree_.create_children(*node);
      node->children_need_splits = depth_ < max_depth_;
    }
    return taken;
  }

  void finish(Node& node) {
    if (!node.children_valid) return;  // the node stays a leaf
    tree_.commit(node);
    any_split_ = true;
  }

 private:
  Tree& tree_;
  Search& search_;
  std::size_t max_depth_;
  std::size_t depth_ = 0;
  bool any_split_ = true;  // in the last level
};

}  // namespace spinney::boosting
