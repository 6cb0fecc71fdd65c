// How a tree grows: the concepts of its parts, and the loop that joins them.
//
//   RowPartition   the training rows, ordered so that the rows of each node are contiguous
//   SplitSearch    sums of derivatives and the best split of a node
//   NodeExpander   makes the children of leaves: LocalExpander on one worker, WorkerExpander on
//                  several, which add up their histograms
//   Frontier       decides which leaves are split next
//   TreeWriter     writes nodes into the finished tree
//
// A new growth rule is one new file: a GrowthOrder (best_first.h, level_wise.h) if it splits one
// leaf after another, else a Frontier (oblivious_frontier.h).
#pragma once

#include <concepts>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "spinney/common/parallel.h"
#include "spinney/common/random.h"
#include "spinney/common/types.h"
#include "spinney/common/watch.h"

namespace spinney::boosting {

// The base of all nodes: Node derives from GrowingNode<Node>.
template <class Node>
struct GrowingNode {
  std::size_t begin = 0;  // its rows in the row partition
  std::size_t end = 0;
  std::size_t depth = 0;
  common::NodeIndex index = 0;      // in the tree, once it is part of it
  std::uint64_t name = 1;           // hash of the path from the root; known before the index
  std::vector<std::uint32_t> path;  // columns of the splits above, if interaction_cst limits them
  Node* left = nullptr;             // once the frontier has chosen the node
  Node* right = nullptr;
  bool children_need_splits = true;  // false: the tree will be full before they could be split
  bool children_valid = false;       // both have enough rows; set by the NodeExpander
  bool expanded = false;             // the children can be committed; set by the Frontier
  bool is_leaf = false;              // of the tree as it is now

  std::size_t n_rows() const { return end - begin; }
};

template <class N>
concept SplitNode = std::derived_from<N, GrowingNode<N>> && requires(const N& node) {
  { node.split.found() } -> std::same_as<bool>;
  { node.split.gain } -> std::convertible_to<double>;
  { node.split.feature } -> std::convertible_to<std::uint32_t>;
};

template <class W, class Node>
concept TreeWriter = requires(W& writer, Node& node, std::size_t n) {
  writer.add_leaf(node);     // sets node.index
  writer.write_split(node);  // the node has children that were added
};

template <class R, class Node>
concept RowPartition = requires(R& rows, const R& fixed, Node& parent, const Node& node) {
  rows.partition(parent);                                       // sets the rows of both children
  { fixed.rows_of(node) } -> std::same_as<const common::Row*>;  // null: 0 … n-1
};

template <class S, class Node>
concept SplitSearch = requires(S& search, Node& node) {
  search.start(node);    // sums and split of the root
  search.inherit(node);  // sums of the children, from the node's split
  { search.leaves_enough(node) } -> std::same_as<bool>;  // enough rows in both children
  search.search_children(node);
  search.release(node);  // what the children did not take over
  { search.work(node) } -> std::convertible_to<std::uint64_t>;  // to find its children's splits
};

template <class E, class Node>
concept NodeExpander = requires(E& expander, Node& root, std::span<Node* const> nodes) {
  expander.start(root);
  // Makes the children of the nodes: their rows and, if needed, splits. Sets children_valid.
  expander.expand(nodes);
  { expander.work(root) } -> std::convertible_to<std::uint64_t>;
  // Whether several threads may expand different nodes at the same time.
  { E::concurrent } -> std::convertible_to<bool>;
};

template <class F, class Node>
concept Frontier = requires(F& frontier, Node& node) {
  frontier.start(node);                                     // the root is the first leaf
  { frontier.take() } -> std::same_as<std::vector<Node*>>;  // to expand next; empty: finished
  frontier.finish(node);                                    // the node was expanded, or refused
};

// A frontier whose next leaf is known before it is taken.
template <class F, class Node>
concept PeekableFrontier = Frontier<F, Node> && requires(F& frontier) {
  { frontier.peek() } -> std::same_as<const Node*>;
};

// The attributes of a leaf that determine its order.
struct LeafRank {
  double gain;
  std::size_t depth;
  common::NodeIndex index;
};

// A strict order of the leaves to split.
template <class O>
concept GrowthOrder = requires(const LeafRank& a, const LeafRank& b) {
  { O::before(a, b) } -> std::same_as<bool>;
};

// The nodes of a tree that grows; only some of them are part of the tree yet.
template <SplitNode Node, TreeWriter<Node> Writer>
class GrowingTree {
 public:
  GrowingTree(Writer& writer, std::size_t max_leaf_nodes, bool keeps_paths)
      : writer_(writer), max_leaf_nodes_(max_leaf_nodes), keeps_paths_(keeps_paths) {}

  Node& create_root(std::size_t n_rows) {
    Node& root = nodes_.emplace_back();
    root.end = n_rows;
    return root;
  }

  void create_children(Node& parent) {
    parent.left = &nodes_.emplace_back();
    parent.right = &nodes_.emplace_back();
    parent.left->name = common::combine(parent.name, 1);
    parent.right->name = common::combine(parent.name, 2);
    for (Node* const child : {parent.left, parent.right}) {
      child->depth = parent.depth + 1;
      if (!keeps_paths_) continue;
      child->path = parent.path;
      child->path.push_back(parent.split.feature);
    }
  }

  void add_leaf(Node& node) {
    node.is_leaf = true;
    ++n_leaves_;
    writer_.add_leaf(node);
  }

  // Makes the node's children leaves of the tree.
  void commit(Node& parent) {
    parent.is_leaf = false;
    --n_leaves_;
    add_leaf(*parent.left);
    add_leaf(*parent.right);
    writer_.write_split(parent);
  }

  // How many more leaves may be split.
  std::size_t n_splits_left() const { return max_leaf_nodes_ - n_leaves_; }
  // Index that the next node of the tree will have.
  common::NodeIndex next_index() const { return static_cast<common::NodeIndex>(2 * n_leaves_ - 1); }
  std::deque<Node>& nodes() { return nodes_; }

 private:
  Writer& writer_;
  std::size_t max_leaf_nodes_;
  bool keeps_paths_;
  std::size_t n_leaves_ = 0;
  std::deque<Node> nodes_;  // addresses stay valid
};

// Expands one node after another with the rows of this process.
template <SplitNode Node, RowPartition<Node> Rows, SplitSearch<Node> Search>
class LocalExpander {
 public:
  static constexpr bool concurrent = Search::concurrent;

  LocalExpander(Rows& rows, Search& search) : rows_(rows), search_(search) {}

  void start(Node& root) { search_.start(root); }

  void expand(std::span<Node* const> nodes) {
    for (Node* const node : nodes) {
      rows_.partition(*node);
      search_.inherit(*node);
      node->children_valid = search_.leaves_enough(*node);
      if (!node->children_valid) continue;
      if (node->children_need_splits) search_.search_children(*node);
      search_.release(*node);
    }
  }

  std::uint64_t work(const Node& node) const { return search_.work(node); }

 private:
  Rows& rows_;
  Search& search_;
};

// Nodes of up to this many rows are expanded side by side, one thread each; threads share the rows
// of larger ones.
constexpr std::size_t max_rows_of_one_thread = 16'384;

template <class Node, PeekableFrontier<Node> F, NodeExpander<Node> E>
void expand_small_nodes(F& frontier, E& expander, int n_threads, common::Watch& watch) {
  const auto take = [&]() -> Node* {
    const Node* const next = frontier.peek();
    if (next == nullptr || next->n_rows() > max_rows_of_one_thread) return nullptr;
    const std::vector<Node*> taken = frontier.take();
    return taken.empty() ? nullptr : taken.front();
  };
  const Node* const next = frontier.peek();
  if (next == nullptr || next->n_rows() > max_rows_of_one_thread) return;
  common::parallel_tasks(
      n_threads, take,
      [&](Node& node) {
        watch.poll(expander.work(node));
        Node* const one = &node;
        expander.expand({&one, 1});
      },
      [&](Node& node) { frontier.finish(node); });
}

// Grows the tree from its root.
template <class Node, Frontier<Node> F, NodeExpander<Node> E>
void grow_tree(Node& root, F& frontier, E& expander, int n_threads, common::Watch& watch) {
  expander.start(root);
  frontier.start(root);
  for (;;) {
    if constexpr (E::concurrent && PeekableFrontier<F, Node>) {
      expand_small_nodes<Node>(frontier, expander, n_threads, watch);
    }
    const std::vector<Node*> nodes = frontier.take();
    if (nodes.empty()) return;
    for (const Node* const node : nodes) watch.poll(expander.work(*node));
    expander.expand(nodes);
    for (Node* const node : nodes) frontier.finish(*node);
  }
}

}  // namespace spinney::boosting
