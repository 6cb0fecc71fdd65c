#include "spinney/boosting/vector_builder.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "spinney/boosting/common_split.h"
#include "spinney/common/check.h"

namespace spinney::boosting {

VectorBuilder::VectorBuilder(const table::BinnedMatrix& matrix, std::size_t n_outputs,
                             TreeRules rules, int n_threads)
    : RoundBuilder(std::move(rules)),
      matrix_(matrix),
      n_outputs_(n_outputs),
      n_threads_(n_threads),
      histograms_(matrix, n_threads),
      scales_(n_outputs + 1),
      packed_(n_outputs + 1) {
  if (rules_.growth == Growth::oblivious) {
    throw common::InputError("growth='oblivious': expected one output, got several");
  }
  tree_.value_size = n_outputs;
}

std::vector<NodeToSplit> VectorBuilder::tasks_of(const Node& node) const {
  std::vector<NodeToSplit> tasks(n_outputs_ + 1);
  const auto n_counted = static_cast<double>(node.totals[n_outputs_]);
  for (std::size_t k = 0; k <= n_outputs_; ++k) {
    tasks[k].histogram = node.histograms.empty() ? nullptr : node.histograms[k].data();
    tasks[k].total = node.totals[k];
    tasks[k].scale = scales_[k];
    tasks[k].n_rows = node.end - node.begin;
    tasks[k].n_counted = n_counted;
    tasks[k].rows = rows_.data() + node.begin;
    tasks[k].weights = weights_;
  }
  return tasks;
}

void VectorBuilder::count(Node& node) {
  const std::size_t n = node.end - node.begin;
  gathered_.resize(n);
  node.histograms.assign(n_outputs_ + 1, Histogram(matrix_.n_codes()));
  for (std::size_t k = 0; k <= n_outputs_; ++k) {
    for (std::size_t i = 0; i < n; ++i) gathered_[i] = packed_[k][rows_[node.begin + i]];
    histograms_.build(rows_.data() + node.begin, {gathered_.data()}, n, node.histograms[k].data());
  }
}

void VectorBuilder::search(Node& node) {
  if (node.depth >= rules_.max_depth || node.end - node.begin < 2) return;
  std::vector<NodeToSplit> tasks = tasks_of(node);
  const std::vector<std::uint8_t> allowed =
      allowed_columns(matrix_.n_features(), node.depth, node.name, node.path);
  for (NodeToSplit& task : tasks) task.allowed = marks(allowed);
  node.split = find_common_split(matrix_, std::span(tasks).first(n_outputs_), &tasks.back(),
                                 rules_.split, n_threads_);
}

void VectorBuilder::describe_all(const Node& node) {
  const auto at = static_cast<std::size_t>(node.index);
  double weight = 0;
  double objective = 0;
  for (std::size_t k = 0; k < n_outputs_; ++k) {
    const Sums sums = unpack(node.totals[k], scales_[k]);
    const double value = leaf_weight(sums, rules_.split, {});
    tree_.value[at * n_outputs_ + k] = value;
    weight += sums.hessian;
    objective += sums.gradient * value +
                 0.5 * (sums.hessian + rules_.split.l2_regularization) * value * value;
  }
  tree_.weight[at] = weight;
  tree_.n_rows[at] = static_cast<std::int64_t>(node.end - node.begin);
  tree_.impurity[at] = weight > 0 ? objective / weight : 0.0;
}

void VectorBuilder::part(std::size_t which) {
  Node parent = std::move(nodes_[which]);
  const BinSplit split = parent.split;
  const std::uint8_t* const codes = matrix_.codes(split.feature);
  const std::uint32_t missing = matrix_.column(split.feature).missing_code();
  const auto begin = rows_.begin() + static_cast<std::ptrdiff_t>(parent.begin);
  const auto end = rows_.begin() + static_cast<std::ptrdiff_t>(parent.end);
  const auto middle = static_cast<std::size_t>(
      std::stable_partition(begin, end,
                            [&](common::Row row) { return split.goes_left(codes[row], missing); }) -
      rows_.begin());
  Node left;
  Node right;
  left.begin = parent.begin;
  left.end = right.begin = middle;
  right.end = parent.end;
  left.depth = right.depth = parent.depth + 1;
  const std::vector<NodeToSplit> tasks = tasks_of(parent);
  for (std::size_t k = 0; k <= n_outputs_; ++k) {
    left.totals.push_back(left_sum(matrix_, tasks[k], split));
    right.totals.push_back(parent.totals[k] - left.totals[k]);
  }
  left.name = name_of_child(parent.name, true);
  right.name = name_of_child(parent.name, false);
  left.path = parent.path;
  if (!rules_.interaction_cst.empty()) left.path.push_back(split.feature);
  right.path = left.path;
  const auto at = static_cast<std::size_t>(parent.index);
  write_question(at, matrix_.column(split.feature), split);
  questions_[at] = split;
  for (Node* const child : {&left, &right}) {
    child->index = tree_.add_leaf(0, 0, 0);
    describe_all(*child);
  }
  questions_.resize(tree_.size());
  tree_.left[at] = left.index;
  tree_.right[at] = right.index;
  tree_.max_depth = std::max(tree_.max_depth, static_cast<std::int32_t>(left.depth));
  if (nodes_.size() + 1 < rules_.max_leaf_nodes) {
    const bool left_is_smaller = left.end - left.begin <= right.end - right.begin;
    Node& small = left_is_smaller ? left : right;
    Node& large = left_is_smaller ? right : left;
    count(small);
    large.histograms = std::move(parent.histograms);
    for (std::size_t k = 0; k <= n_outputs_; ++k) {
      for (std::size_t i = 0; i < large.histograms[k].size(); ++i) {
        large.histograms[k][i] -= small.histograms[k][i];
      }
    }
    search(left);
    search(right);
  }
  nodes_[which] = std::move(left);
  nodes_.push_back(std::move(right));
}

void VectorBuilder::grow(std::uint64_t number, const common::Row* rows, std::size_t n_rows,
                         const loss::Derivatives& of, const RowWeights& weights,
                         bool constant_hessian, common::Watch& watch) {
  number_ = number;
  weights_ = weights;
  tree_.clear();
  nodes_.clear();
  leaves_.clear();
  questions_.clear();
  rows_.resize(n_rows);
  if (rows == nullptr) {
    std::iota(rows_.begin(), rows_.end(), common::Row{0});
  } else {
    std::copy(rows, rows + n_rows, rows_.begin());
  }
  draw_tree_columns(matrix_.n_features());
  Node root;
  root.end = n_rows;
  root.totals.resize(n_outputs_ + 1);
  gathered_.resize(n_rows);
  for (std::size_t k = 0; k < n_outputs_; ++k) {
    scales_[k] = pack_gradients(of.from(k * matrix_.n_rows()), weights, rows, n_rows,
                                constant_hessian, n_threads_, company_, gathered_.data());
    packed_[k].resize(matrix_.n_rows());
    for (std::size_t i = 0; i < n_rows; ++i) {
      packed_[k][rows_[i]] = gathered_[i];
      root.totals[k] += gathered_[i];
    }
  }
  packed_[n_outputs_].resize(matrix_.n_rows());
  for (const common::Row row : rows_) {
    const PackedSum once = weights.whole ? static_cast<PackedSum>(weights.values[row]) : 1;
    packed_[n_outputs_][row] = once;
    root.totals[n_outputs_] += once;
  }
  root.index = tree_.add_leaf(0, 0, 0);
  describe_all(root);
  questions_.resize(1);
  if (rules_.max_leaf_nodes > 1) {
    count(root);
    search(root);
  }
  nodes_.push_back(std::move(root));
  while (nodes_.size() < rules_.max_leaf_nodes) {
    const std::size_t next = next_leaf(nodes_);
    if (next == nodes_.size()) break;
    watch.poll((nodes_[next].end - nodes_[next].begin) * matrix_.n_features() * n_outputs_);
    part(next);
  }
  for (const Node& node : nodes_) {
    leaves_.push_back({node.index, node.begin, node.end, rows_.data() + node.begin, {}});
  }
}

void VectorBuilder::refine_leaves(const loss::Derivatives& of) {
  for (std::size_t k = 0; k < n_outputs_; ++k) {
    const loss::Derivatives own = of.from(k * matrix_.n_rows());
    const std::vector<Sums> sums =
        leaf_sums(own, {scales_[k].largest_gradient, scales_[k].largest_hessian});
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      tree_.value[static_cast<std::size_t>(leaves_[i].node) * n_outputs_ + k] =
          leaf_weight(sums[i], rules_.split, leaves_[i].bounds);
    }
  }
}

void VectorBuilder::find_leaves(const table::RowMatrix& other, const common::Row* rows,
                                std::size_t n, common::NodeIndex* out) const {
  follow_codes(static_cast<const table::BinnedMatrix&>(other), matrix_, questions_, rows, n,
               n_threads_, out);
}

}  // namespace spinney::boosting
