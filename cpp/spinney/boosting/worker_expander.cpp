#include "spinney/boosting/worker_expander.h"

#include <algorithm>

namespace spinney::boosting {

namespace {

constexpr std::size_t counts_per_column = 256;

// The child whose histogram is built; the other one's is the parent's minus this one.
HistogramNode& lighter_child(const HistogramNode& parent) {
  const bool left = hessian_units(parent.left->total) <= hessian_units(parent.right->total);
  return left ? *parent.left : *parent.right;
}

std::size_t n_doubt_counts(const HistogramNode& node) {
  return counts_per_column * node.open.doubts.size();
}

}  // namespace

template <RowPartition<HistogramNode> Rows>
void WorkerExpander<Rows>::start(Node& root) {
  const std::size_t n_codes = matrix_.n_codes();
  message_.resize(2 + n_codes);
  message_[0] = root.total;
  message_[1] = static_cast<std::int64_t>(search_.count_own_rows(root));
  search_.build_histogram(root, message_.data() + 2);
  exchange_.add(message_.data(), message_.size());
  root.total = message_[0];
  root.n_counted = static_cast<std::uint64_t>(message_[1]);
  root.n_all = rows_.scale().n_rows;
  if (!search_.may_split(root) || search_.rules().max_leaf_nodes < 2) return;
  root.histogram = search_.pool().take();
  std::copy_n(message_.data() + 2, n_codes, root.histogram);
  if (!search_.by_level()) find_split(root);
}

template <RowPartition<HistogramNode> Rows>
void WorkerExpander<Rows>::expand(std::span<Node* const> nodes) {
  write_message(nodes);
  exchange_.add(message_.data(), message_.size());
  read_message(nodes);
  for (Node* const node : nodes) {
    if (!node->children_valid || !node->children_need_splits || search_.by_level()) continue;
    find_split(*node->left);
    find_split(*node->right);
  }
  for (Node* const node : nodes) {
    if (node->children_valid) search_.release(*node);
  }
}

// For each node: rows of the left child, the same counted by weights, counts of rows for uncertain
// splits, and the histogram of the lighter child if the children need splits.
template <RowPartition<HistogramNode> Rows>
void WorkerExpander<Rows>::write_message(std::span<Node* const> nodes) {
  const std::size_t n_codes = matrix_.n_codes();
  std::size_t size = 0;
  for (const Node* const node : nodes) {
    size += 2 + n_doubt_counts(*node) + (node->children_need_splits ? n_codes : 0);
  }
  message_.resize(size);
  std::int64_t* at = message_.data();
  for (Node* const node : nodes) {
    rows_.partition(*node);
    search_.inherit_sums(*node);
    *at++ = static_cast<std::int64_t>(node->left->n_rows());
    *at++ = static_cast<std::int64_t>(search_.count_own_rows(*node->left));
    if (n_doubt_counts(*node) > 0) {
      count_doubts(matrix_, search_.task_of(*node), rows_.scale(), search_.rules().split,
                   node->open, at);
      at += n_doubt_counts(*node);
    }
    if (!node->children_need_splits) continue;
    search_.build_histogram(lighter_child(*node), at);
    at += n_codes;
  }
}

template <RowPartition<HistogramNode> Rows>
void WorkerExpander<Rows>::read_message(std::span<Node* const> nodes) {
  const std::int64_t* at = message_.data();
  for (Node* const node : nodes) {
    Node& left = *node->left;
    Node& right = *node->right;
    left.n_all = static_cast<std::uint64_t>(*at++);
    left.n_counted = static_cast<std::uint64_t>(*at++);
    right.n_all = node->n_all - left.n_all;
    right.n_counted = node->n_counted - left.n_counted;
    const std::int64_t* const counts = at;
    at += n_doubt_counts(*node);
    const std::int64_t* const histogram = at;
    if (node->children_need_splits) at += matrix_.n_codes();
    if (n_doubt_counts(*node) > 0 && !search_.has_enough(*node)) {
      // A side has too few rows: the node gets another split, or none.
      settle_doubts(matrix_, search_.task_of(*node), rows_.scale(), search_.rules().split, counts,
                    node->open);
      node->split = node->open.split;
      node->left = node->right = nullptr;
      continue;
    }
    node->open = {};
    if (node->children_need_splits) take_histograms(*node, histogram);
    node->children_valid = search_.leaves_enough(*node);
    if (!node->children_valid && node->children_need_splits) return_histogram(*node);
  }
}

template <RowPartition<HistogramNode> Rows>
void WorkerExpander<Rows>::take_histograms(Node& parent, const std::int64_t* histogram) {
  const std::size_t n_codes = matrix_.n_codes();
  Node& small = lighter_child(parent);
  Node& large = &small == parent.left ? *parent.right : *parent.left;
  small.histogram = search_.pool().take();
  std::copy_n(histogram, n_codes, small.histogram);
  std::swap(large.histogram, parent.histogram);
  for (std::size_t i = 0; i < n_codes; ++i) large.histogram[i] -= histogram[i];
}

// The node stays a leaf: its histogram is the sum of its children's.
template <RowPartition<HistogramNode> Rows>
void WorkerExpander<Rows>::return_histogram(Node& parent) {
  PackedSum*& left = parent.left->histogram;
  PackedSum*& right = parent.right->histogram;
  for (std::size_t i = 0; i < matrix_.n_codes(); ++i) left[i] += right[i];
  std::swap(parent.histogram, left);
  search_.pool().release(right);
}

template <RowPartition<HistogramNode> Rows>
void WorkerExpander<Rows>::find_split(Node& node) {
  if (!search_.may_split(node)) return;
  NodeToSplit task = search_.task_of(node);
  const std::vector<std::uint8_t> allowed = search_.allowed_columns(node);
  task.allowed = marks(allowed);
  node.open = find_open_split(matrix_, task, rows_.scale(), search_.rules().split, n_threads_);
  node.split = node.open.split;
}

template class WorkerExpander<MovingRows>;
template class WorkerExpander<RowsInPlace>;

}  // namespace spinney::boosting
