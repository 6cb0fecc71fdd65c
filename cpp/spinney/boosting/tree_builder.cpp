#include "spinney/boosting/tree_builder.h"

#include <algorithm>
#include <bit>

#include "spinney/boosting/growth_order.h"
#include "spinney/boosting/lookahead_frontier.h"
#include "spinney/boosting/oblivious_frontier.h"
#include "spinney/boosting/worker_expander.h"
#include "spinney/boosting/worker_frontier.h"

namespace spinney::boosting {

using common::Row;

template <RowPartition<HistogramNode> Rows>
TreeBuilder<Rows>::TreeBuilder(const table::BinnedMatrix& matrix, TreeRules rules, int n_threads)
    : RoundBuilder(std::move(rules)),
      matrix_(matrix),
      n_threads_(n_threads),
      rows_(matrix, n_threads),
      search_(matrix, rules_, rows_, n_threads) {}

template <RowPartition<HistogramNode> Rows>
void TreeBuilder<Rows>::grow(const TreeInput& input, common::Watch& watch) {
  clear_tree();
  splits_.clear();
  weights_ = input.weights;
  if (weights_.whole) {
    rules_.split.cuts.clear();
  } else if (rules_.split.cuts.empty()) {
    rules_.split.cuts = useful_cuts(matrix_, rules_.split.min_samples_leaf);
  }
  GrowingTree<Node, TreeBuilder> tree(*this, rules_.max_leaf_nodes,
                                      !rules_.interaction_cst.empty());
  Node& root = tree.create_root(input.n_rows);
  root.total = rows_.start(input, workers_, shared_memory_);
  largest_ = {rows_.scale().largest_gradient, rows_.scale().largest_hessian};
  search_.start_tree(input);
  if (workers_.exchange == nullptr) {
    LocalExpander<Node, Rows, HistogramSearch<Rows>> expander(rows_, search_);
    grow_from(root, tree, expander, watch);
  } else {
    WorkerExpander<Rows> expander(matrix_, rows_, search_, *workers_.exchange, n_threads_);
    grow_from(root, tree, expander, watch);
  }
  for (const Node& node : tree.nodes()) {
    if (!node.is_leaf) continue;
    if (node.expanded) rows_.recover(node);
    leaves_.push_back({node.index, node.begin, node.end, rows_.rows_of(node), node.bounds});
  }
}

template <RowPartition<HistogramNode> Rows>
template <class Tree, class Expander>
void TreeBuilder<Rows>::grow_from(Node& root, Tree& tree, Expander& expander,
                                  common::Watch& watch) {
  if (rules_.growth == Growth::oblivious) {
    const auto levels = static_cast<std::size_t>(std::bit_width(rules_.max_leaf_nodes) - 1);
    const std::size_t max_depth = std::min<std::size_t>(rules_.max_depth, levels);
    ObliviousFrontier<Node, Tree, HistogramSearch<Rows>> frontier(tree, search_, max_depth);
    grow_tree(root, frontier, expander, n_threads_, watch);
    return;
  }
  with_growth_order(rules_.growth, [&]<class Order>(Order) {
    using Local = LookaheadFrontier<Node, Tree, Order>;
    using Shared = WorkerFrontier<Node, Tree, Order>;
    std::conditional_t<Expander::concurrent, Local, Shared> frontier(tree);
    grow_tree(root, frontier, expander, n_threads_, watch);
  });
}

template <RowPartition<HistogramNode> Rows>
void TreeBuilder<Rows>::add_leaf(Node& node) {
  node.index = tree_.add_leaf(0, 0, 0);
  const std::uint64_t n_rows = workers_.exchange == nullptr ? node.n_rows() : node.n_all;
  describe(static_cast<std::size_t>(node.index), unpack(node.total, rows_.scale()), node.bounds,
           static_cast<std::size_t>(n_rows));
  splits_.resize(tree_.size());
}

template <RowPartition<HistogramNode> Rows>
void TreeBuilder<Rows>::write_split(const Node& node) {
  const auto at = static_cast<std::size_t>(node.index);
  write_bin_split(at, matrix_.column(node.split.feature), node.split);
  splits_[at] = node.split;
  link_children(node);
}

template <RowPartition<HistogramNode> Rows>
void TreeBuilder<Rows>::find_leaves(const table::RowMatrix& matrix, const Row* rows, std::size_t n,
                                    common::NodeIndex* out) const {
  follow_codes(static_cast<const table::BinnedMatrix&>(matrix), matrix_, splits_, rows, n,
               n_threads_, out);
}

template class TreeBuilder<MovingRows>;
template class TreeBuilder<RowsInPlace>;

}  // namespace spinney::boosting
