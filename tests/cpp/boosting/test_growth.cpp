#include "spinney/boosting/growth.h"

#include <vector>

#include "spinney/boosting/best_first.h"
#include "spinney/boosting/level_wise.h"
#include "spinney/boosting/lookahead_frontier.h"
#include "spinney/boosting/oblivious_frontier.h"
#include "spinney/boosting/worker_frontier.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::boosting;

namespace {

struct FakeSplit {
  double gain = 0;
  std::uint32_t feature = 0;
  bool found() const { return gain > 0; }
};

struct FakeNode : GrowingNode<FakeNode> {
  FakeSplit split;
  bool split_is_certain() const { return true; }
};

// A gain that depends on the path to the node; about a quarter of the nodes have no split, and
// equal gains occur.
double gain_of(std::uint64_t name) { return static_cast<double>(name % 40) / 30 - 0.3; }

// Halves the rows of each node.
struct FakeRows {
  void partition(FakeNode& parent) {
    parent.left->begin = parent.begin;
    parent.left->end = parent.right->begin = parent.begin + parent.n_rows() / 2;
    parent.right->end = parent.end;
  }
  const common::Row* rows_of(const FakeNode&) const { return nullptr; }
};

struct FakeSearch {
  static constexpr bool concurrent = true;

  void start(FakeNode& root) { root.split.gain = 1; }
  void inherit(FakeNode&) {}
  bool leaves_enough(const FakeNode& parent) const { return parent.left->n_rows() > 0; }
  void search_children(FakeNode& parent) {
    for (FakeNode* const child : {parent.left, parent.right}) {
      if (child->n_rows() > 1) child->split.gain = gain_of(child->name);
    }
  }
  void release(FakeNode&) {}
  std::uint64_t work(const FakeNode& node) const { return node.n_rows(); }

  std::vector<FakeNode*> split_level(const std::vector<FakeNode*>& leaves, std::size_t) {
    std::vector<FakeNode*> found;
    for (FakeNode* const leaf : leaves) {
      if (gain_of(leaf->name) > 0 || leaf->depth == 0) found.push_back(leaf);
    }
    return found;
  }
};

// Records the names of the split nodes in the order of the tree.
struct FakeWriter {
  common::NodeIndex n_nodes = 0;
  std::vector<std::uint64_t> splits;

  void add_leaf(FakeNode& node) { node.index = n_nodes++; }
  void write_split(const FakeNode& node) { splits.push_back(node.name); }
};

using FakeTree = GrowingTree<FakeNode, FakeWriter>;
using FakeExpander = LocalExpander<FakeNode, FakeRows, FakeSearch>;

// An expander of several nodes at a time, as with several workers.
struct BatchExpander : FakeExpander {
  static constexpr bool concurrent = false;
  using FakeExpander::FakeExpander;
};

constexpr std::size_t n_rows = 40'000;

template <class Frontier, class Expander>
std::vector<std::uint64_t> grow_with(std::size_t max_leaf_nodes, int n_threads) {
  FakeWriter writer;
  FakeTree tree(writer, max_leaf_nodes, false);
  FakeRows rows;
  FakeSearch search;
  Expander expander(rows, search);
  Frontier frontier(tree);
  common::Watch watch;
  grow_tree(tree.create_root(n_rows), frontier, expander, n_threads, watch);
  return writer.splits;
}

// Splits the first leaf by the order until the tree is full.
template <class Order>
std::vector<std::uint64_t> slow_growth(std::size_t max_leaf_nodes) {
  struct Leaf {
    LeafRank rank;
    std::uint64_t name;
    std::size_t n;
  };
  std::vector<Leaf> leaves = {{{1, 0, 0}, 1, n_rows}};
  std::vector<std::uint64_t> splits;
  common::NodeIndex n_nodes = 1;
  while (leaves.size() < max_leaf_nodes) {
    std::size_t next = leaves.size();
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (!(leaves[i].rank.gain > 0)) continue;
      if (next == leaves.size() || Order::before(leaves[i].rank, leaves[next].rank)) next = i;
    }
    if (next == leaves.size()) break;
    const Leaf parent = leaves[next];
    splits.push_back(parent.name);
    leaves.erase(leaves.begin() + static_cast<std::ptrdiff_t>(next));
    for (const std::uint64_t side : {1, 2}) {
      const std::size_t n = side == 1 ? parent.n / 2 : parent.n - parent.n / 2;
      const std::uint64_t name = common::combine(parent.name, side);
      leaves.push_back({{n > 1 ? gain_of(name) : 0, parent.rank.depth + 1, n_nodes++}, name, n});
    }
  }
  return splits;
}

template <class Order>
void check_order() {
  using Local = LookaheadFrontier<FakeNode, FakeTree, Order>;
  using Shared = WorkerFrontier<FakeNode, FakeTree, Order>;
  for (const std::size_t max_leaf_nodes : {1, 2, 3, 8, 31, 200}) {
    const std::vector<std::uint64_t> expected = slow_growth<Order>(max_leaf_nodes);
    CHECK(expected.size() < max_leaf_nodes);
    for (const int n_threads : {1, 3}) {
      const auto found = grow_with<Local, FakeExpander>(max_leaf_nodes, n_threads);
      CHECK(found == expected);
    }
    const auto shared = grow_with<Shared, BatchExpander>(max_leaf_nodes, 1);
    CHECK(shared == expected);
  }
}

}  // namespace

TEST(best_first_growth_splits_the_largest_gain) { check_order<BestFirst>(); }

TEST(level_wise_growth_splits_one_level_after_another) { check_order<LevelWise>(); }

TEST(oblivious_growth_ends_at_the_largest_depth) {
  for (const std::size_t max_depth : {0, 1, 5}) {
    FakeWriter writer;
    FakeTree tree(writer, unsigned{1} << max_depth, false);
    FakeRows rows;
    FakeSearch search;
    FakeExpander expander(rows, search);
    ObliviousFrontier<FakeNode, FakeTree, FakeSearch> frontier(tree, search, max_depth);
    common::Watch watch;
    grow_tree(tree.create_root(n_rows), frontier, expander, 2, watch);
    std::size_t depth = 0;
    for (const FakeNode& node : tree.nodes()) {
      if (!node.is_leaf) continue;
      depth = std::max(depth, node.depth);
      // A leaf above the last level has no split.
      CHECK(node.depth == max_depth || gain_of(node.name) <= 0);
    }
    CHECK(depth == max_depth);
    CHECK(writer.n_nodes == static_cast<common::NodeIndex>(2 * writer.splits.size() + 1));
  }
}

TEST(small_leaves_are_taken_before_their_turn) {
  FakeWriter writer;
  FakeTree tree(writer, 4, false);
  LookaheadFrontier<FakeNode, FakeTree, BestFirst> frontier(tree);
  FakeNode& root = tree.create_root(8);
  root.split.gain = 1;
  frontier.start(root);
  CHECK(frontier.take() == std::vector<FakeNode*>{&root});
  CHECK(frontier.take().empty());
  root.left->split.gain = 2;
  root.right->split.gain = 3;
  frontier.finish(root);
  // Both children fit into a tree of four leaves, regardless of the nodes below them.
  CHECK(frontier.take() == std::vector<FakeNode*>{root.right});
  CHECK(frontier.take() == std::vector<FakeNode*>{root.left});
  frontier.finish(*root.left);
  CHECK(writer.splits.size() == 1);  // the right child is first
  frontier.finish(*root.right);
  CHECK(writer.splits.size() == 3);
}
