#include "spinney/boosting/tree_builder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "spinney/boosting/common_split.h"
#include "spinney/boosting/row_division.h"
#include "spinney/common/parallel.h"
#include "spinney/common/random.h"

namespace spinney::boosting {

using common::parallel_for;
using common::Row;
using common::worthwhile_threads;

namespace {

constexpr std::size_t by_row_limit = 8192;
// Up to here the sums of all rows fit into the cache, and need not go along with their rows.
constexpr std::size_t rows_with_sums_at_hand = 131'072;
constexpr std::size_t few_to_share =
    16'384;  // rows of a node that one thread had better have alone

SPINNEY_KERNEL void take_away(const PackedSum* part, std::size_t n, PackedSum* whole) {
  for (std::size_t i = 0; i < n; ++i) whole[i] -= part[i];
}

}  // namespace

TreeBuilder::TreeBuilder(const table::BinnedMatrix& matrix, TreeRules rules, int n_threads)
    : RoundBuilder(std::move(rules)),
      matrix_(matrix),
      n_threads_(n_threads),
      histograms_(matrix, n_threads),
      copies_(matrix) {}

PackedSum* TreeBuilder::take_histogram() {
  if (free_.empty()) {
    memory_.emplace_back(matrix_.n_codes());
    return memory_.back().data();
  }
  PackedSum* const histogram = free_.back();
  free_.pop_back();
  return histogram;
}

void TreeBuilder::release(PackedSum*& histogram) {
  if (histogram != nullptr) free_.push_back(histogram);
  histogram = nullptr;
}

const Row* TreeBuilder::rows_of(const Node& node) const {
  if (all_rows_ && node.depth == 0) return nullptr;
  return rows_[node.buffer].data() + node.begin;
}

PackedSum* TreeBuilder::packed(int buffer) {
  return buffer == 1 && lent_ != nullptr ? lent_ : packed_[buffer].data();
}

RowSums TreeBuilder::sums_of(const Node& node) {
  if (!moves_sums_) return {sums_of_rows_, true};
  return {packed(node.buffer) + node.begin, false};
}

bool TreeBuilder::may_split(const Node& node) const {
  const std::uint64_t fewest = std::max<std::uint64_t>(2, 2 * rules_.split.min_samples_leaf);
  return node.depth < rules_.max_depth && node.n_counted >= fewest;
}

NodeToSplit TreeBuilder::task_of(const Node& node) {
  NodeToSplit task;
  task.histogram = node.histogram;
  task.sums = sums_of(node);
  task.total = node.total;
  task.n_rows = node.end - node.begin;
  task.n_counted = static_cast<double>(node.n_counted);
  task.rows = rows_of(node);
  task.weights = weights_;
  task.scale = scale_;
  task.bounds = node.bounds;
  return task;
}

void TreeBuilder::search(Node& node) {
  NodeToSplit task = task_of(node);
  const std::vector<std::uint8_t> allowed =
      allowed_columns(matrix_.n_features(), node.depth, node.name, node.path);
  task.allowed = marks(allowed);
  node.split = find_split(matrix_, task, scale_, rules_.split, n_threads_);
}

// Divides the node's rows and their sums, those that go left first; returns how many these are.
std::size_t TreeBuilder::divide(const Node& node, const BinSplit& split) {
  const std::size_t n = node.end - node.begin;
  const table::BinnedColumn& column = matrix_.column(split.feature);
  // Few rows lie far apart: where one is read as a whole its codes are at hand for the histogram.
  const std::uint8_t* side_by_side = nullptr;
  if (n > by_row_limit || rows_of(node) == nullptr) {
    side_by_side = stays_in_place() ? copies_.codes(split.feature, n, n_threads_)
                                    : matrix_.codes(split.feature);
  }
  const bool by_row = side_by_side == nullptr;
  RowDivision division{by_row ? matrix_.row_codes() + column.slot : side_by_side,
                       by_row ? matrix_.stride() : 1, by_row};
  std::array<std::uint8_t, 256>& left = division.left;
  if (by_row && column.bundled) {
    for (std::size_t c = 0; c < column.code_of.size(); ++c) {
      left[c] = split.goes_left(column.code_of[c], column.missing_code()) ? 1 : 0;
    }
  } else if (split.categorical) {
    for (std::uint32_t c = 0; c < column.n_codes(); ++c) {
      left[c] = split.goes_left(c, column.missing_code()) ? 1 : 0;
    }
  } else {
    std::fill_n(left.begin(), split.code + 1, std::uint8_t{1});
    if (column.has_missing) left[column.missing_code()] = split.missing_left ? 1 : 0;
  }
  if (stays_in_place()) {
    const bool are_all = rows_of(node) == nullptr;
    return divide_in_place(division, rows_[0].data() + node.begin, n, are_all, n_threads_);
  }
  Row* const rows = rows_of(node) == nullptr ? nullptr : rows_[node.buffer].data() + node.begin;
  PackedSum* const sums = moves_sums_ ? packed(node.buffer) + node.begin : nullptr;
  return divide_rows(
      division, {rows, sums}, n, n_threads_, goes_left_.data() + node.begin,
      {rows_[1 - node.buffer].data() + node.begin, packed(1 - node.buffer) + node.begin});
}

// Gives the children of a node histograms, or none if they have few rows: one is counted in the
// spare memory, the other is what is left of the parent's, in its place.
void TreeBuilder::make_histograms(Node& parent) {
  Node& left = *parent.left;
  Node& right = *parent.right;
  const bool left_is_smaller = left.end - left.begin <= right.end - right.begin;
  Node& small = left_is_smaller ? left : right;
  Node& large = left_is_smaller ? right : left;
  const bool keeps_all = rules_.growth == Growth::oblivious;
  if (parent.histogram == nullptr || (!keeps_all && large.end - large.begin <= few_node_rows))
    return;
  PackedSum* const counted = parent.spare;
  histograms_.build(rows_of(small), sums_of(small), small.end - small.begin, counted);
  std::swap(large.histogram, parent.histogram);
  take_away(counted, matrix_.n_codes(), large.histogram);
  if (keeps_all || small.end - small.begin > few_node_rows) {
    std::swap(small.histogram, parent.spare);
  }
}

std::uint64_t TreeBuilder::n_rows_of(const Node& node) const {
  return company_.exchange == nullptr ? node.end - node.begin : node.n_all;
}

std::uint64_t TreeBuilder::count_own_rows(const Node& node) const {
  if (!weights_.whole) return node.end - node.begin;
  double total = 0;
  const Row* const rows = rows_of(node);
  for (std::size_t i = 0; i < node.end - node.begin; ++i) {
    total += weights_.values[rows == nullptr ? i : rows[i]];
  }
  return static_cast<std::uint64_t>(total);
}

// Divides a node's rows between two children.
void TreeBuilder::part_rows(Node& parent) {
  const std::size_t n_left = divide(parent, parent.split);
  Node& left = *parent.left;
  Node& right = *parent.right;
  left.begin = parent.begin;
  left.end = right.begin = parent.begin + n_left;
  right.end = parent.end;
  left.buffer = right.buffer = stays_in_place() ? 0 : 1 - parent.buffer;
  left.depth = right.depth = parent.depth + 1;
  if (company_.exchange == nullptr) {
    const bool left_is_smaller = left.end - left.begin <= right.end - right.begin;
    Node& small = left_is_smaller ? left : right;
    Node& large = left_is_smaller ? right : left;
    small.n_counted = count_own_rows(small);
    large.n_counted = parent.n_counted - small.n_counted;
  }
}

// Whether the children have enough rows: only a question that was made for other nodes, too, may
// leave them too few.
bool TreeBuilder::has_enough(const Node& parent) const {
  return std::min(parent.left->n_counted, parent.right->n_counted) >=
         std::max<std::size_t>(1, rules_.split.min_samples_leaf);
}

void TreeBuilder::inherit(Node& parent) {
  const BinSplit& split = parent.split;
  Node& left = *parent.left;
  Node& right = *parent.right;
  left.total = split.left;
  right.total = parent.total - split.left;
  left.bounds = right.bounds = parent.bounds;
  if (!rules_.split.monotonic_cst.empty()) {
    tighten(rules_.split.monotonic_cst[split.feature], unpack(left.total, scale_),
            unpack(right.total, scale_), left.bounds, right.bounds);
  }
  if (!rules_.interaction_cst.empty()) {
    left.path = parent.path;
    left.path.push_back(split.feature);
    right.path = left.path;
  }
}

TreeBuilder::Node& TreeBuilder::add_node() {
  nodes_.emplace_back();
  return nodes_.back();
}

void TreeBuilder::add_children(Node& parent) {
  parent.left = &add_node();
  parent.right = &add_node();
  parent.left->name = name_of_child(parent.name, true);
  parent.right->name = name_of_child(parent.name, false);
}

// Makes the children of a node and finds their questions. Several nodes may be prepared at once;
// they only share what is read.
void TreeBuilder::prepare(Node& parent) {
  part_rows(parent);
  inherit(parent);
  if (parent.children_ask) search_children(parent);
}

void TreeBuilder::search_children(Node& parent) {
  Node& left = *parent.left;
  Node& right = *parent.right;
  const bool search_left = may_split(left);
  const bool search_right = may_split(right);
  // No histogram where no question will be asked.
  if (search_left || search_right) make_histograms(parent);
  if (search_left && search_right) {
    // Two searches at once where one alone would not be worth a second thread.
    const double work =
        std::max(split_work(matrix_, left.end - left.begin, left.histogram != nullptr),
                 split_work(matrix_, right.end - right.begin, right.histogram != nullptr));
    const int alone = worthwhile_threads(work, n_threads_, true);
    const int both = alone > 1 ? 1 : worthwhile_threads(2 * work, n_threads_, true);
    parallel_for(2, both, [&](std::size_t i, int) { search(i == 0 ? left : right); });
  } else {
    if (search_left) search(left);
    if (search_right) search(right);
  }
}

void TreeBuilder::finish(Node& parent) {
  parent.prepared = true;
  release(parent.spare);
  release(parent.histogram);
  for (Node* const child : {parent.left, parent.right}) {
    if (!child->split.found()) release(child->histogram);
  }
}

// Whether the turn of a comes after that of b.
bool TreeBuilder::later(const Turn& a, const Turn& b) const {
  if (rules_.growth == Growth::level_wise) {
    return a.depth > b.depth || (a.depth == b.depth && a.index > b.index);
  }
  return a.gain < b.gain || (a.gain == b.gain && a.index > b.index);
}

void TreeBuilder::push(std::vector<Turn>& turns, const Turn& turn) const {
  turns.push_back(turn);
  std::push_heap(turns.begin(), turns.end(),
                 [this](const Turn& a, const Turn& b) { return later(a, b); });
}

TreeBuilder::Node* TreeBuilder::pop(std::vector<Turn>& turns) const {
  std::pop_heap(turns.begin(), turns.end(),
                [this](const Turn& a, const Turn& b) { return later(a, b); });
  Node* const node = turns.back().node;
  turns.pop_back();
  return node;
}

void TreeBuilder::add_to_tree(Node& node) {
  node.index = tree_.add_leaf(0, 0, 0);
  node.is_leaf = true;
  ++n_leaves_;
  describe(static_cast<std::size_t>(node.index), unpack(node.total, scale_), node.bounds,
           static_cast<std::size_t>(n_rows_of(node)));
  questions_.resize(tree_.size());
  if (!node.split.found()) return;
  const Turn turn{node.split.gain, node.depth, node.index, &node};
  push(waiting_, turn);
  if (company_.exchange == nullptr) push(unprepared_, turn);
}

// Puts a node's question and its children into the tree.
void TreeBuilder::commit(Node& parent) {
  const auto at = static_cast<std::size_t>(parent.index);
  write_question(at, matrix_.column(parent.split.feature), parent.split);
  questions_[at] = parent.split;
  parent.is_leaf = false;
  --n_leaves_;
  add_to_tree(*parent.left);
  add_to_tree(*parent.right);
  tree_.left[at] = parent.left->index;
  tree_.right[at] = parent.right->index;
  tree_.max_depth = std::max(tree_.max_depth, static_cast<std::int32_t>(parent.left->depth));
}

void TreeBuilder::commit_prepared() {
  while (n_leaves_ < rules_.max_leaf_nodes && !waiting_.empty() &&
         waiting_.front().node->prepared) {
    --n_begun_;
    commit(*pop(waiting_));
  }
}

// The leaf whose children are to be prepared next, or null. That is the one whose turn it is, or,
// while others prepare that, the next of those whose turn will come unless the tree is full before.
TreeBuilder::Node* TreeBuilder::take() {
  commit_prepared();
  const std::size_t left_over = rules_.max_leaf_nodes - n_leaves_;
  if (left_over == 0 || unprepared_.empty()) return nullptr;
  const bool has_its_turn = unprepared_.front().node == waiting_.front().node;
  if (!has_its_turn && n_begun_ >= left_over) return nullptr;
  Node* const node = pop(unprepared_);
  ++n_begun_;
  add_children(*node);
  node->children_ask = left_over > 1;
  if (node->histogram != nullptr) node->spare = take_histogram();
  return node;
}

void TreeBuilder::grow(std::uint64_t number, const Row* rows, std::size_t n_rows,
                       const loss::Derivatives& of, const RowWeights& weights,
                       bool constant_hessian, common::Watch& watch) {
  number_ = number;
  tree_.clear();
  nodes_.clear();
  leaves_.clear();
  questions_.clear();
  waiting_.clear();
  unprepared_.clear();
  n_leaves_ = 0;
  n_begun_ = 0;
  free_.clear();
  for (std::vector<PackedSum>& histogram : memory_) free_.push_back(histogram.data());
  rows_[0].resize(n_rows);
  all_rows_ = rows == nullptr;
  all_rows_n_ = n_rows;
  if (!all_rows_) std::copy(rows, rows + n_rows, rows_[0].begin());
  weights_ = weights;
  const PackedSum total = pack(of, rows, n_rows, constant_hessian);
  if (weights.whole) {
    rules_.split.cuts.clear();
  } else if (rules_.split.cuts.empty()) {
    rules_.split.cuts = cuts_worth_a_look(matrix_, rules_.split.min_samples_leaf);
  }
  draw_tree_columns(matrix_.n_features());

  Node& root = add_node();
  root.end = n_rows;
  root.total = total;
  root.n_counted = count_own_rows(root);
  const bool by_level = rules_.growth == Growth::oblivious;
  if (company_.exchange != nullptr) {
    start_together(root);
  } else if (may_split(root) && rules_.max_leaf_nodes > 1) {
    without_histograms_ = by_level && counts_by_column(n_rows);
    if (by_level ? !without_histograms_ : n_rows > few_node_rows) {
      root.histogram = take_histogram();
      histograms_.build(rows_of(root), sums_of(root), n_rows, root.histogram);
    }
    if (!by_level) search(root);
  }
  add_to_tree(root);
  if (company_.exchange != nullptr) {
    by_level ? grow_by_level_together(watch) : grow_by_gain_together(watch);
  } else {
    by_level ? grow_by_level(watch) : grow_by_gain(watch);
  }
  for (const Node& node : nodes_) {
    if (!node.is_leaf) continue;
    leaves_.push_back({node.index, node.begin, node.end, rows_of(node), node.bounds});
  }
}

// Packs the derivatives of the rows to where their sums are to be, and returns their total.
PackedSum TreeBuilder::pack(const loss::Derivatives& of, const Row* rows, std::size_t n,
                            bool constant_hessian) {
  PackedSum* at = nullptr;
  std::size_t n_packed = n;
  if (stays_in_place()) {
    n_packed = matrix_.n_rows();
    if (!of.in_blocks) packed_[0].resize(n_packed);
    at = of.in_blocks ? reinterpret_cast<PackedSum*>(of.gradient) : packed_[0].data();
    scale_ =
        pack_at_rows(of, weights_, rows, n, n_packed, constant_hessian, n_threads_, company_, at);
    sums_of_rows_ = at;
  } else {
    rows_[1].resize(n);
    goes_left_.resize(n);
    moves_sums_ = matrix_.n_rows() > rows_with_sums_at_hand;
    // Sums of some rows that are to lie at their rows' places are made in the other array.
    common::LargeArray<PackedSum>& packed = packed_[moves_sums_ || all_rows_ ? 0 : 1];
    packed.resize(n);
    if (moves_sums_ && lent_ == nullptr) packed_[1].resize(n);
    at = packed.data();
    scale_ = pack_gradients(of, weights_, rows, n, constant_hessian, n_threads_, company_, at);
    if (&packed != &packed_[0]) {
      packed_[0].resize(matrix_.n_rows());
      for (std::size_t i = 0; i < n; ++i) packed_[0][rows[i]] = packed[i];
    }
    sums_of_rows_ = packed_[0].data();
  }
  largest_ = {scale_.largest_gradient, scale_.largest_hessian};
  return std::accumulate(at, at + n_packed, PackedSum{0});
}

// Whether the sums of each column that is looked at are made as they are needed, level by level. A
// histogram has the codes of all columns: with few rows and many columns most of them are empty,
// and with columns drawn nobody looks at most of it.
bool TreeBuilder::counts_by_column(std::size_t n_rows) const {
  const double share = rules_.max_features_tree * rules_.max_features_level * rules_.max_features;
  const double n_codes =
      static_cast<double>(matrix_.n_codes()) / static_cast<double>(matrix_.n_features());
  return static_cast<double>(n_rows) * share <= 2 * n_codes;
}

// The question of a level, and the nodes that it is to be asked of: it may divide them.
BinSplit TreeBuilder::ask_level(std::size_t depth, common::Watch& watch,
                                std::vector<Node*>& asked) {
  std::vector<Node*> open;
  std::vector<NodeToSplit> tasks;
  std::vector<std::uint8_t> allowed;
  for (Node& node : nodes_) {
    if (!node.is_leaf || !may_split(node)) continue;
    if (node.histogram == nullptr && !without_histograms_) continue;
    if (open.empty()) {
      allowed = allowed_columns(matrix_.n_features(), node.depth, depth, node.path);
    }
    open.push_back(&node);
    tasks.push_back(task_of(node));
    tasks.back().allowed = marks(allowed);
  }
  asked.clear();
  if (open.empty()) return {};
  watch.poll(all_rows_n_ * matrix_.n_features());
  const BinSplit split = find_common_split(matrix_, tasks, nullptr, rules_.split, n_threads_);
  if (!split.found()) return {};
  for (std::size_t i = 0; i < open.size(); ++i) {
    Node& node = *open[i];
    node.split = split;
    node.split.left = left_sum(matrix_, tasks[i], split);
    const std::int8_t sign = rules_.split.monotonic_cst.empty()
                                 ? std::int8_t{0}
                                 : rules_.split.monotonic_cst[split.feature];
    node.split.gain =
        gain_of(tasks[i], node.split.left, sign, rules_.split.l2_regularization, rules_.split);
    // A node that the question does not help may still be divided by it; one that it must not
    // divide (by its weights, or by a constraint) is not.
    const Sums left = unpack(node.split.left, scale_);
    const Sums right = unpack(node.total - node.split.left, scale_);
    const bool heavy = std::min(left.hessian, right.hessian) >= rules_.split.min_hessian_leaf;
    if (heavy && (sign == 0 || node.split.gain != 0)) asked.push_back(&node);
  }
  return split;
}

// One question a level, asked of all nodes that it leaves enough rows on both sides.
void TreeBuilder::grow_by_level(common::Watch& watch) {
  level_limit_ = std::min<std::size_t>(rules_.max_depth, std::bit_width(rules_.max_leaf_nodes) - 1);
  std::vector<Node*> asked;
  for (std::size_t depth = 0; depth < level_limit_; ++depth) {
    if (!ask_level(depth, watch, asked).found()) break;
    bool parted = false;
    for (Node* const node : asked) {
      add_children(*node);
      part_rows(*node);
      if (!has_enough(*node)) continue;
      inherit(*node);
      if (depth + 1 < level_limit_ && node->histogram != nullptr) {
        node->spare = take_histogram();
        make_histograms(*node);
      }
      release(node->spare);
      release(node->histogram);
      commit(*node);
      parted = true;
    }
    if (!parted) break;
  }
}

void TreeBuilder::grow_by_gain(common::Watch& watch) {
  const auto prepare_it = [&](Node& node) {
    watch.poll((node.end - node.begin) * matrix_.n_features());
    prepare(node);
  };
  // Threads share the rows of a large leaf; small ones are prepared side by side.
  const auto small_is_next = [&] {
    return !unprepared_.empty() &&
           unprepared_.front().node->end - unprepared_.front().node->begin <= few_to_share;
  };
  for (;;) {
    if (small_is_next()) {
      common::parallel_tasks(
          n_threads_, [&]() -> Node* { return small_is_next() ? take() : nullptr; }, prepare_it,
          [&](Node& node) {
            finish(node);
            commit_prepared();
          });
    }
    Node* const node = take();
    if (node == nullptr) break;
    prepare_it(*node);
    finish(*node);
  }
}

void TreeBuilder::find_leaves(const table::RowMatrix& other, const Row* rows, std::size_t n,
                              common::NodeIndex* out) const {
  follow_codes(static_cast<const table::BinnedMatrix&>(other), matrix_, questions_, rows, n,
               n_threads_, out);
}

}  // namespace spinney::boosting
