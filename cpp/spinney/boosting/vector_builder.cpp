#include "spinney/boosting/vector_builder.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "spinney/boosting/common_split.h"
#include "spinney/boosting/growth_order.h"
#include "spinney/boosting/lookahead_frontier.h"
#include "spinney/common/check.h"

namespace spinney::boosting {

using common::Row;

void ListedRows::start(const TreeInput& input) {
  rows_.resize(input.n_rows);
  if (input.rows == nullptr) {
    std::iota(rows_.begin(), rows_.end(), Row{0});
  } else {
    std::copy(input.rows, input.rows + input.n_rows, rows_.begin());
  }
}

void ListedRows::partition(VectorNode& parent) {
  const BinSplit& split = parent.split;
  const std::uint8_t* const codes = matrix_.codes(split.feature);
  const std::uint32_t missing = matrix_.column(split.feature).missing_code();
  const auto begin = rows_.begin() + static_cast<std::ptrdiff_t>(parent.begin);
  const auto end = rows_.begin() + static_cast<std::ptrdiff_t>(parent.end);
  const auto middle = std::stable_partition(
      begin, end, [&](Row row) { return split.goes_left(codes[row], missing); });
  parent.left->begin = parent.begin;
  parent.left->end = parent.right->begin = static_cast<std::size_t>(middle - rows_.begin());
  parent.right->end = parent.end;
}

VectorSearch::VectorSearch(const table::BinnedMatrix& matrix, std::size_t n_outputs,
                           const TreeRules& rules, const ListedRows& rows, int n_threads)
    : matrix_(matrix),
      n_outputs_(n_outputs),
      rules_(rules),
      rows_(rows),
      n_threads_(n_threads),
      columns_(rules, matrix.n_features()),
      histograms_(matrix, n_threads),
      scales_(n_outputs + 1),
      packed_(n_outputs + 1) {}

void VectorSearch::start_tree(const TreeInput& input, const Workers& workers) {
  weights_ = input.weights;
  columns_.start_tree(input.number);
  const auto row_at = [&](std::size_t i) {
    return input.rows == nullptr ? i : std::size_t{input.rows[i]};
  };
  gathered_.resize(input.n_rows);
  for (std::size_t k = 0; k < n_outputs_; ++k) {
    scales_[k] =
        pack_gradients(input.derivatives.from(k * matrix_.n_rows()), weights_, input.rows,
                       input.n_rows, input.constant_hessian, n_threads_, workers, gathered_.data());
    packed_[k].resize(matrix_.n_rows());
    for (std::size_t i = 0; i < input.n_rows; ++i) packed_[k][row_at(i)] = gathered_[i];
  }
  packed_[n_outputs_].resize(matrix_.n_rows());
  for (std::size_t i = 0; i < input.n_rows; ++i) {
    packed_[n_outputs_][row_at(i)] =
        weights_.whole ? static_cast<PackedSum>(weights_.values[row_at(i)]) : 1;
  }
}

void VectorSearch::start(VectorNode& root) {
  root.totals.resize(n_outputs_ + 1);
  const Row* const rows = rows_.rows_of(root);
  for (std::size_t k = 0; k <= n_outputs_; ++k) {
    for (std::size_t i = 0; i < root.n_rows(); ++i) root.totals[k] += packed_[k][rows[i]];
  }
  if (rules_.max_leaf_nodes < 2) return;
  build_histograms(root);
  search(root);
}

void VectorSearch::inherit(VectorNode& parent) {
  const std::vector<NodeToSplit> tasks = tasks_of(parent);
  for (std::size_t k = 0; k <= n_outputs_; ++k) {
    const PackedSum left = left_sum(matrix_, tasks[k], parent.split);
    parent.left->totals.push_back(left);
    parent.right->totals.push_back(parent.totals[k] - left);
  }
}

// The histograms of the larger child are the parent's minus those of the smaller one.
void VectorSearch::search_children(VectorNode& parent) {
  const bool left_is_smaller = parent.left->n_rows() <= parent.right->n_rows();
  VectorNode& small = left_is_smaller ? *parent.left : *parent.right;
  VectorNode& large = left_is_smaller ? *parent.right : *parent.left;
  build_histograms(small);
  large.histograms = std::move(parent.histograms);
  for (std::size_t k = 0; k <= n_outputs_; ++k) {
    for (std::size_t i = 0; i < large.histograms[k].size(); ++i) {
      large.histograms[k][i] -= small.histograms[k][i];
    }
  }
  search(*parent.left);
  search(*parent.right);
}

std::vector<NodeToSplit> VectorSearch::tasks_of(const VectorNode& node) const {
  std::vector<NodeToSplit> tasks(n_outputs_ + 1);
  const auto n_counted = static_cast<double>(node.totals[n_outputs_]);
  for (std::size_t k = 0; k <= n_outputs_; ++k) {
    tasks[k].histogram = node.histograms.empty() ? nullptr : node.histograms[k].data();
    tasks[k].total = node.totals[k];
    tasks[k].scale = scales_[k];
    tasks[k].n_rows = node.n_rows();
    tasks[k].n_counted = n_counted;
    tasks[k].rows = rows_.rows_of(node);
    tasks[k].weights = weights_;
  }
  return tasks;
}

void VectorSearch::build_histograms(VectorNode& node) {
  const std::size_t n = node.n_rows();
  const Row* const rows = rows_.rows_of(node);
  gathered_.resize(n);
  node.histograms.assign(n_outputs_ + 1, VectorNode::Histogram(matrix_.n_codes()));
  for (std::size_t k = 0; k <= n_outputs_; ++k) {
    for (std::size_t i = 0; i < n; ++i) gathered_[i] = packed_[k][rows[i]];
    histograms_.build(rows, {gathered_.data()}, n, node.histograms[k].data());
  }
}

void VectorSearch::search(VectorNode& node) const {
  if (node.depth >= rules_.max_depth || node.n_rows() < 2) return;
  std::vector<NodeToSplit> tasks = tasks_of(node);
  const std::vector<std::uint8_t> allowed = columns_.allowed(node.depth, node.name, node.path);
  for (NodeToSplit& task : tasks) task.allowed = marks(allowed);
  node.split = find_common_split(matrix_, std::span(tasks).first(n_outputs_), &tasks.back(),
                                 rules_.split, n_threads_);
}

VectorBuilder::VectorBuilder(const table::BinnedMatrix& matrix, std::size_t n_outputs,
                             TreeRules rules, int n_threads)
    : RoundBuilder(std::move(rules)),
      matrix_(matrix),
      n_outputs_(n_outputs),
      n_threads_(n_threads),
      rows_(matrix),
      search_(matrix, n_outputs, rules_, rows_, n_threads) {
  if (rules_.growth == Growth::oblivious) {
    throw common::InputError("growth='oblivious': expected one output, got several");
  }
  tree_.value_size = n_outputs;
}

void VectorBuilder::grow(const TreeInput& input, common::Watch& watch) {
  clear_tree();
  splits_.clear();
  weights_ = input.weights;
  rows_.start(input);
  search_.start_tree(input, workers_);
  using Tree = GrowingTree<VectorNode, VectorBuilder>;
  Tree tree(*this, rules_.max_leaf_nodes, !rules_.interaction_cst.empty());
  VectorNode& root = tree.create_root(input.n_rows);
  LocalExpander<VectorNode, ListedRows, VectorSearch> expander(rows_, search_);
  with_growth_order(rules_.growth, [&]<class Order>(Order) {
    LookaheadFrontier<VectorNode, Tree, Order> frontier(tree);
    grow_tree(root, frontier, expander, 1, watch);
  });
  for (const VectorNode& node : tree.nodes()) {
    if (!node.is_leaf) continue;
    leaves_.push_back({node.index, node.begin, node.end, rows_.rows_of(node), {}});
  }
}

void VectorBuilder::add_leaf(VectorNode& node) {
  node.index = tree_.add_leaf(0, 0, 0);
  splits_.resize(tree_.size());
  const auto at = static_cast<std::size_t>(node.index);
  double weight = 0;
  double objective = 0;
  for (std::size_t k = 0; k < n_outputs_; ++k) {
    const Sums sums = unpack(node.totals[k], search_.scale(k));
    const double value = leaf_weight(sums, rules_.split, {});
    tree_.value[at * n_outputs_ + k] = value;
    weight += sums.hessian;
    objective += sums.gradient * value +
                 0.5 * (sums.hessian + rules_.split.l2_regularization) * value * value;
  }
  tree_.weight[at] = weight;
  tree_.n_rows[at] = static_cast<std::int64_t>(node.n_rows());
  tree_.impurity[at] = weight > 0 ? objective / weight : 0.0;
}

void VectorBuilder::write_split(const VectorNode& node) {
  const auto at = static_cast<std::size_t>(node.index);
  write_bin_split(at, matrix_.column(node.split.feature), node.split);
  splits_[at] = node.split;
  link_children(node);
}

void VectorBuilder::refine_leaves(const loss::Derivatives& derivatives) {
  for (std::size_t k = 0; k < n_outputs_; ++k) {
    const PackedScale& scale = search_.scale(k);
    const std::vector<Sums> sums = leaf_sums(derivatives.from(k * matrix_.n_rows()),
                                             {scale.largest_gradient, scale.largest_hessian});
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      tree_.value[static_cast<std::size_t>(leaves_[i].node) * n_outputs_ + k] =
          leaf_weight(sums[i], rules_.split, leaves_[i].bounds);
    }
  }
}

void VectorBuilder::find_leaves(const table::RowMatrix& matrix, const Row* rows, std::size_t n,
                                common::NodeIndex* out) const {
  follow_codes(static_cast<const table::BinnedMatrix&>(matrix), matrix_, splits_, rows, n,
               n_threads_, out);
}

}  // namespace spinney::boosting
