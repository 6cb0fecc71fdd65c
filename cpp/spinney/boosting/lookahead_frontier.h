// Splits one leaf after another. While one leaf is expanded, other threads may take the leaves that
// will be split later unless the tree is full before. Leaves become part of the tree in the order
// of the growth rule, so threads do not change the tree.
#pragma once

#include <vector>

#include "spinney/boosting/leaf_queue.h"

namespace spinney::boosting {

template <class Node, class Tree, GrowthOrder Order>
class LookaheadFrontier {
 public:
  explicit LookaheadFrontier(Tree& tree) : tree_(tree) {}

  void start(Node& root) { add(root); }

  const Node* peek() { return untaken_.empty() ? nullptr : untaken_.front(); }

  std::vector<Node*> take() {
    const std::size_t n_left = tree_.n_splits_left();
    if (n_left == 0 || untaken_.empty()) return {};
    // The next leaf to split is always taken; others only if they cannot exceed the tree's size.
    const bool is_next = untaken_.front() == leaves_.front();
    if (!is_next && n_taken_ >= n_left) return {};
    Node* const node = untaken_.pop();
    ++n_taken_;
    tree_.create_children(*node);
    node->children_need_splits = n_left > 1;
    return {node};
  }

  void finish(Node& node) {
    node.expanded = true;
    while (tree_.n_splits_left() > 0 && !leaves_.empty() && leaves_.front()->expanded) {
      --n_taken_;
      Node& parent = *leaves_.pop();
      tree_.commit(parent);
      add_to_queues(*parent.left);
      add_to_queues(*parent.right);
    }
  }

 private:
  void add(Node& leaf) {
    tree_.add_leaf(leaf);
    add_to_queues(leaf);
  }

  void add_to_queues(Node& leaf) {
    if (!leaf.split.found()) return;
    leaves_.push(leaf, leaf.index);
    untaken_.push(leaf, leaf.index);
  }

  Tree& tree_;
  LeafQueue<Node, Order> leaves_;   // of the tree, with a split
  LeafQueue<Node, Order> untaken_;  // those of them that no thread expands yet
  std::size_t n_taken_ = 0;         // the others of them
};

}  // namespace spinney::boosting
