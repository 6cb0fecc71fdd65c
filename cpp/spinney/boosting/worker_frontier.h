// Splits leaves when several workers grow a tree together. An all-reduce takes time, so one
// all-reduce serves several leaves: those that will be split later unless the tree is full before.
// The tree is the one that a single worker would grow.
#pragma once

#include <vector>

#include "spinney/boosting/leaf_queue.h"

namespace spinney::boosting {

template <class Node, class Tree, GrowthOrder Order>
class WorkerFrontier {
 public:
  explicit WorkerFrontier(Tree& tree) : tree_(tree) {}

  void start(Node& root) {
    tree_.add_leaf(root);
    add_to_queue(root);
  }

  // Simulates the growth over the nodes that are expanded already. A node with a split that is
  // reached is a candidate: it will be split unless unknown children come before it. The first two
  // thirds of the candidates are taken: an unneeded one costs a histogram, a missing one costs an
  // all-reduce.
  std::vector<Node*> take() {
    commit_expanded();
    const std::size_t n_left = tree_.n_splits_left();
    const std::vector<Candidate> candidates = find_candidates(n_left);
    const std::size_t n_taken = (2 * candidates.size() + 2) / 3;
    std::vector<Node*> taken;
    for (const Candidate& candidate : candidates) {
      if (taken.size() == n_taken) break;
      Node& node = *candidate.node;
      tree_.create_children(node);
      node.children_need_splits = n_left > 1 + candidate.n_before;
      taken.push_back(&node);
    }
    return taken;
  }

  // A node that was refused has another split, or none.
  void finish(Node& node) {
    node.expanded = node.children_valid;
    if (!node.expanded) leaves_.update(node);
  }

 private:
  struct Candidate {
    Node* node;
    std::size_t n_before;  // nodes that are certainly split before it
  };

  void add_to_queue(Node& leaf) {
    if (leaf.split.found()) leaves_.push(leaf, leaf.index);
  }

  void commit_expanded() {
    while (tree_.n_splits_left() > 0 && !leaves_.empty() && leaves_.front()->expanded) {
      Node& parent = *leaves_.pop();
      tree_.commit(parent);
      add_to_queue(*parent.left);
      add_to_queue(*parent.right);
    }
  }

  std::vector<Candidate> find_candidates(std::size_t n_left) const {
    std::vector<Candidate> candidates;
    LeafQueue<Node, Order> leaves = leaves_;
    std::size_t n_certain = 0;
    // Nodes that are not part of the tree yet come after those that are, if their gains are equal.
    common::NodeIndex index = tree_.next_index();
    for (std::size_t i = 0; i < n_left && !leaves.empty(); ++i) {
      Node* const node = leaves.pop();
      if (!node->expanded) candidates.push_back({node, n_certain});
      n_certain += node->split_is_certain() ? 1 : 0;
      if (!node->expanded) continue;
      for (Node* const child : {node->left, node->right}) {
        if (child->split.found()) leaves.push(*child, index);
        ++index;
      }
    }
    return candidates;
  }

  Tree& tree_;
  LeafQueue<Node, Order> leaves_;
};

}  // namespace spinney::boosting
