#include "spinney/boosting/histogram_search.h"

#include <algorithm>

#include "spinney/boosting/common_split.h"
#include "spinney/common/dispatch.h"
#include "spinney/common/parallel.h"

namespace spinney::boosting {

using common::parallel_for;
using common::Row;
using common::worthwhile_threads;

namespace {

SPINNEY_INLINE void subtract(const PackedSum* child, std::size_t n, PackedSum* parent) {
  for (std::size_t i = 0; i < n; ++i) parent[i] -= child[i];
}

HistogramNode& smaller_child(const HistogramNode& parent) {
  return parent.left->n_rows() <= parent.right->n_rows() ? *parent.left : *parent.right;
}

HistogramNode& larger_child(const HistogramNode& parent) {
  return parent.left->n_rows() <= parent.right->n_rows() ? *parent.right : *parent.left;
}

}  // namespace

template <RowPartition<HistogramNode> Rows>
HistogramSearch<Rows>::HistogramSearch(const table::BinnedMatrix& matrix, const TreeRules& rules,
                                       const Rows& rows, int n_threads)
    : matrix_(matrix),
      rules_(rules),
      rows_(rows),
      n_threads_(n_threads),
      histograms_(matrix, n_threads),
      pool_(matrix.n_codes()),
      columns_(rules, matrix.n_features()) {}

template <RowPartition<HistogramNode> Rows>
void HistogramSearch<Rows>::start_tree(const TreeInput& input) {
  pool_.reset();
  weights_ = input.weights;
  columns_.start_tree(input.number);
}

template <RowPartition<HistogramNode> Rows>
void HistogramSearch<Rows>::start(Node& root) {
  root.n_counted = count_own_rows(root);
  if (!may_split(root) || rules_.max_leaf_nodes < 2) return;
  without_histograms_ = by_level() && sums_by_column(root.n_rows());
  if (by_level() ? !without_histograms_ : root.n_rows() > few_node_rows) {
    root.histogram = pool_.take();
    build_histogram(root, root.histogram);
  }
  if (!by_level()) search(root);
}

// A histogram has the codes of all columns. If rows are few or most columns are not drawn, it is
// faster to add up the rows of each column when it is searched.
template <RowPartition<HistogramNode> Rows>
bool HistogramSearch<Rows>::sums_by_column(std::size_t n_rows) const {
  const double fraction =
      rules_.max_features_tree * rules_.max_features_level * rules_.max_features;
  const double n_codes =
      static_cast<double>(matrix_.n_codes()) / static_cast<double>(matrix_.n_features());
  return static_cast<double>(n_rows) * fraction <= 2 * n_codes;
}

template <RowPartition<HistogramNode> Rows>
bool HistogramSearch<Rows>::may_split(const Node& node) const {
  const std::uint64_t fewest = std::max<std::uint64_t>(2, 2 * rules_.split.min_samples_leaf);
  return node.depth < rules_.max_depth && node.n_counted >= fewest;
}

template <RowPartition<HistogramNode> Rows>
NodeToSplit HistogramSearch<Rows>::task_of(const Node& node) const {
  NodeToSplit task;
  task.histogram = node.histogram;
  task.sums = rows_.sums_of(node);
  task.total = node.total;
  task.n_rows = node.n_rows();
  task.n_counted = static_cast<double>(node.n_counted);
  task.rows = rows_.rows_of(node);
  task.weights = weights_;
  task.scale = rows_.scale();
  task.bounds = node.bounds;
  return task;
}

template <RowPartition<HistogramNode> Rows>
std::vector<std::uint8_t> HistogramSearch<Rows>::allowed_columns(const Node& node) const {
  return columns_.allowed(node.depth, node.name, node.path);
}

template <RowPartition<HistogramNode> Rows>
void HistogramSearch<Rows>::search(Node& node) const {
  NodeToSplit task = task_of(node);
  const std::vector<std::uint8_t> allowed = allowed_columns(node);
  task.allowed = marks(allowed);
  node.split = find_split(matrix_, task, rows_.scale(), rules_.split, n_threads_);
}

template <RowPartition<HistogramNode> Rows>
std::uint64_t HistogramSearch<Rows>::count_own_rows(const Node& node) const {
  if (!weights_.whole) return node.n_rows();
  double total = 0;
  const Row* const rows = rows_.rows_of(node);
  for (std::size_t i = 0; i < node.n_rows(); ++i) {
    total += weights_.values[rows == nullptr ? i : rows[i]];
  }
  return static_cast<std::uint64_t>(total);
}

template <RowPartition<HistogramNode> Rows>
bool HistogramSearch<Rows>::has_enough(const Node& parent) const {
  return std::min(parent.left->n_counted, parent.right->n_counted) >=
         std::max<std::size_t>(1, rules_.split.min_samples_leaf);
}

// Only a split that was found for several nodes may leave a side of one of them too few rows.
template <RowPartition<HistogramNode> Rows>
bool HistogramSearch<Rows>::leaves_enough(const Node& parent) const {
  return !by_level() || has_enough(parent);
}

template <RowPartition<HistogramNode> Rows>
void HistogramSearch<Rows>::inherit(Node& parent) {
  Node& small = smaller_child(parent);
  small.n_counted = count_own_rows(small);
  larger_child(parent).n_counted = parent.n_counted - small.n_counted;
  inherit_sums(parent);
}

template <RowPartition<HistogramNode> Rows>
void HistogramSearch<Rows>::inherit_sums(Node& parent) const {
  Node& left = *parent.left;
  Node& right = *parent.right;
  left.total = parent.split.left;
  right.total = parent.total - parent.split.left;
  left.bounds = right.bounds = parent.bounds;
  if (rules_.split.monotonic_cst.empty()) return;
  const PackedScale& scale = rows_.scale();
  tighten_bounds(rules_.split.monotonic_cst[parent.split.feature], unpack(left.total, scale),
                 unpack(right.total, scale), rules_.split, left.bounds, right.bounds);
}

template <RowPartition<HistogramNode> Rows>
void HistogramSearch<Rows>::build_histogram(const Node& node, PackedSum* out) {
  histograms_.build(rows_.rows_of(node), rows_.sums_of(node), node.n_rows(), out);
}

// Small nodes get no histogram: find_split adds up their rows column by column.
template <RowPartition<HistogramNode> Rows>
void HistogramSearch<Rows>::make_histograms(Node& parent) {
  Node& small = smaller_child(parent);
  Node& large = larger_child(parent);
  if (parent.histogram == nullptr) return;
  if (!by_level() && large.n_rows() <= few_node_rows) return;
  small.histogram = pool_.take();
  build_histogram(small, small.histogram);
  std::swap(large.histogram, parent.histogram);
  common::dispatch<subtract>(small.histogram, matrix_.n_codes(), large.histogram);
  if (!by_level() && small.n_rows() <= few_node_rows) pool_.release(small.histogram);
}

template <RowPartition<HistogramNode> Rows>
void HistogramSearch<Rows>::search_children(Node& parent) {
  if (by_level()) return make_histograms(parent);
  Node& left = *parent.left;
  Node& right = *parent.right;
  const bool search_left = may_split(left);
  const bool search_right = may_split(right);
  if (search_left || search_right) make_histograms(parent);
  if (search_left && search_right) {
    // One search per thread if a single search is not worth a second thread.
    const double most = std::max(split_work(matrix_, left.n_rows(), left.histogram != nullptr),
                                 split_work(matrix_, right.n_rows(), right.histogram != nullptr));
    const int alone = worthwhile_threads(most, n_threads_, true);
    const int both = alone > 1 ? 1 : worthwhile_threads(2 * most, n_threads_, true);
    parallel_for(2, both, [&](std::size_t i, int) { search(i == 0 ? left : right); });
  } else if (search_left || search_right) {
    search(search_left ? left : right);
  }
}

template <RowPartition<HistogramNode> Rows>
void HistogramSearch<Rows>::release(Node& parent) {
  pool_.release(parent.histogram);
  if (by_level()) return;
  for (Node* const child : {parent.left, parent.right}) {
    if (!child->split.found()) pool_.release(child->histogram);
  }
}

template <RowPartition<HistogramNode> Rows>
std::vector<HistogramNode*> HistogramSearch<Rows>::split_level(const std::vector<Node*>& leaves,
                                                               std::size_t depth) {
  std::vector<Node*> open;
  std::vector<NodeToSplit> tasks;
  for (Node* const leaf : leaves) {
    if (!may_split(*leaf) || (leaf->histogram == nullptr && !without_histograms_)) continue;
    open.push_back(leaf);
    tasks.push_back(task_of(*leaf));
  }
  if (open.empty()) return {};
  const std::vector<std::uint8_t> allowed = columns_.allowed(open[0]->depth, depth, open[0]->path);
  for (NodeToSplit& task : tasks) task.allowed = marks(allowed);
  const BinSplit split = find_common_split(matrix_, tasks, nullptr, rules_.split, n_threads_);
  if (!split.found()) return {};
  const std::vector<std::int8_t>& signs = rules_.split.monotonic_cst;
  const std::int8_t sign = signs.empty() ? std::int8_t{0} : signs[split.feature];
  const PackedScale& scale = rows_.scale();
  std::vector<Node*> found;
  for (std::size_t i = 0; i < open.size(); ++i) {
    Node& node = *open[i];
    node.split = split;
    node.split.left = left_sum(matrix_, tasks[i], split);
    node.split.gain =
        gain_of(tasks[i], node.split.left, sign, rules_.split.l2_regularization, rules_.split);
    // A node may be split without a gain of its own, but not if a side is too light or a
    // constraint forbids it.
    const double left = unpack(node.split.left, scale).hessian;
    const double right = unpack(node.total - node.split.left, scale).hessian;
    const bool heavy = std::min(left, right) >= rules_.split.min_hessian_leaf;
    if (heavy && (sign == 0 || node.split.gain != 0)) found.push_back(&node);
  }
  return found;
}

template class HistogramSearch<MovingRows>;
template class HistogramSearch<RowsInPlace>;

}  // namespace spinney::boosting
