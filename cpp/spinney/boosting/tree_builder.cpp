#include "spinney/boosting/tree_builder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "spinney/boosting/common_split.h"
#include "spinney/common/parallel.h"
#include "spinney/common/random.h"

namespace spinney {
namespace {

constexpr std::size_t by_row_limit = 8192;
constexpr std::size_t few_to_share =
    16'384;  // rows of a node that one thread had better have alone

SPINNEY_KERNEL void take_away(const PackedSum* part, std::size_t n, PackedSum* whole) {
  for (std::size_t i = 0; i < n; ++i) whole[i] -= part[i];
}

}  // namespace

TreeBuilder::TreeBuilder(const BinnedMatrix& matrix, TreeRules rules, int n_threads)
    : RoundBuilder(std::move(rules)),
      matrix_(matrix),
      n_threads_(n_threads),
      histograms_(matrix, n_threads) {}

std::int32_t TreeBuilder::take_slot() {
  if (free_slots_.empty()) {
    slots_.emplace_back(matrix_.n_codes());
    return static_cast<std::int32_t>(slots_.size() - 1);
  }
  const std::int32_t slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

const Row* TreeBuilder::rows_of(const Node& node) const {
  if (all_rows_ && node.depth == 0) return nullptr;
  return rows_[node.buffer].data() + node.begin;
}

bool TreeBuilder::may_split(const Node& node) const {
  const std::size_t n = node.end - node.begin;
  const std::size_t fewest =
      weights_.whole ? 2 : std::max<std::size_t>(2, 2 * rules_.split.min_rows);
  return node.depth < rules_.max_depth && n >= fewest;
}

NodeToSplit TreeBuilder::task_of(const Node& node) {
  NodeToSplit task;
  task.histogram = node.slot < 0 ? nullptr : histogram(node.slot);
  task.packed = packed_[node.buffer].data() + node.begin;
  task.total = node.total;
  task.n_rows = node.end - node.begin;
  task.n_counted = static_cast<double>(count_rows(node));
  task.rows = rows_of(node);
  task.weights = weights_;
  task.scale = scale_;
  task.bounds = node.bounds;
  return task;
}

void TreeBuilder::search(Node& node) {
  NodeToSplit task = task_of(node);
  task.allowed = allowed_columns(matrix_.n_features(), node.depth, node.index, node.path);
  node.split = find_split(matrix_, task, scale_, rules_.split, n_threads_);
}

// Writes the node's rows and gradients into the other buffer, those that go left first, in their
// order; returns how many these are.
std::size_t TreeBuilder::divide_rows(const Node& node, const BinSplit& split) {
  const std::size_t n = node.end - node.begin;
  // Few rows lie far apart: where one is read as a whole its codes are at hand for the histogram.
  const bool by_row = n <= by_row_limit && rows_of(node) != nullptr;
  const BinnedColumn& column = matrix_.column(split.feature);
  const std::uint8_t* const codes =
      by_row ? matrix_.row_codes() + column.slot : matrix_.codes(split.feature);
  const std::size_t stride = by_row ? matrix_.stride() : 1;
  std::array<std::uint8_t, 256> left{};
  for (std::uint32_t c = 0; c < 256; ++c) {
    const std::uint32_t code = by_row && column.bundled ? column.code_of[c] : c;
    left[c] = code < column.n_codes() && split.goes_left(code, column.missing_code()) ? 1 : 0;
  }
  const Row* const from = rows_of(node);
  const PackedSum* const packed = packed_[node.buffer].data() + node.begin;
  Row* const to = rows_[1 - node.buffer].data() + node.begin;
  PackedSum* const packed_to = packed_[1 - node.buffer].data() + node.begin;
  std::uint8_t* const flags = goes_left_.data() + node.begin;
  const int threads = worthwhile_threads(4.0 * static_cast<double>(n), n_threads_, true);
  const std::size_t block_rows =
      std::clamp<std::size_t>(n / static_cast<std::size_t>(threads) + 1, 1024, 16'384);
  const std::size_t n_blocks = (n + block_rows - 1) / block_rows;
  std::vector<std::size_t> n_left(n_blocks + 1);
  parallel_for(n_blocks, threads, [&](std::size_t block, int) {
    const std::size_t begin = block * block_rows;
    const std::size_t end = std::min(n, begin + block_rows);
    std::size_t count = 0;
    if (from == nullptr) {
      for (std::size_t i = begin; i < end; ++i) count += flags[i] = left[codes[i]];
    } else {
      std::size_t i = begin;
      if (by_row) {
        constexpr std::size_t ahead = 64;
        for (; i + ahead < end; ++i) {
          __builtin_prefetch(codes + from[i + ahead] * stride, 0, 2);
          count += flags[i] = left[codes[from[i] * stride]];
        }
      }
      for (; i < end; ++i) count += flags[i] = left[codes[from[i] * stride]];
    }
    n_left[block + 1] = count;
  });
  std::partial_sum(n_left.begin(), n_left.end(), n_left.begin());
  const std::size_t total_left = n_left[n_blocks];
  parallel_for(n_blocks, threads, [&](std::size_t block, int) {
    const std::size_t begin = block * block_rows;
    const std::size_t end = std::min(n, begin + block_rows);
    std::size_t at_left = n_left[block];
    std::size_t at_right = total_left + begin - at_left;
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t flag = flags[i];
      const std::size_t at = flag != 0 ? at_left : at_right;
      to[at] = from == nullptr ? static_cast<Row>(i) : from[i];
      packed_to[at] = packed[i];
      at_left += flag;
      at_right += 1 - flag;
    }
  });
  return total_left;
}

void TreeBuilder::release(std::int32_t& slot) {
  if (slot >= 0) free_slots_.push_back(slot);
  slot = -1;
}

// Gives the children of a node histograms, or none if they have few rows: one is counted in the
// spare slot, the other is what is left of the parent's, in its slot.
void TreeBuilder::make_histograms(Node& parent) {
  Node& left = parent.children[0];
  Node& right = parent.children[1];
  const bool left_is_smaller = left.end - left.begin <= right.end - right.begin;
  Node& small = left_is_smaller ? left : right;
  Node& large = left_is_smaller ? right : left;
  const bool keeps_all = rules_.growth == Growth::oblivious;
  if (parent.slot < 0 || (!keeps_all && large.end - large.begin <= few_node_rows)) return;
  PackedSum* const counted = histogram(parent.spare);
  histograms_.build(rows_of(small), packed_[small.buffer].data() + small.begin,
                    small.end - small.begin, counted);
  std::swap(large.slot, parent.slot);
  take_away(counted, matrix_.n_codes(), histogram(large.slot));
  if (keeps_all || small.end - small.begin > few_node_rows) std::swap(small.slot, parent.spare);
}

std::uint64_t TreeBuilder::count_rows(const Node& node) const {
  if (!weights_.whole) return node.end - node.begin;
  double total = 0;
  const Row* const rows = rows_of(node);
  for (std::size_t i = 0; i < node.end - node.begin; ++i) {
    total += weights_.values[rows == nullptr ? i : rows[i]];
  }
  return static_cast<std::uint64_t>(total);
}

// Divides a node's rows between two children; false: they would have too few, it stays a leaf.
// (Only a question that was made for other nodes, too, can be such.)
bool TreeBuilder::divide(Node& parent) {
  const BinSplit& split = parent.split;
  const std::size_t n_left = divide_rows(parent, split);
  Node left;
  Node right;
  left.begin = parent.begin;
  left.end = right.begin = parent.begin + n_left;
  right.end = parent.end;
  left.buffer = right.buffer = 1 - parent.buffer;
  if (rules_.growth == Growth::oblivious && std::min(count_rows(left), count_rows(right)) <
                                                std::max<std::size_t>(1, rules_.split.min_rows)) {
    return false;
  }
  left.depth = right.depth = parent.depth + 1;
  left.total = split.left;
  right.total = parent.total - split.left;
  left.bounds = right.bounds = parent.bounds;
  if (!rules_.split.monotonic.empty()) {
    tighten(rules_.split.monotonic[split.feature], unpack(left.total, scale_),
            unpack(right.total, scale_), left.bounds, right.bounds);
  }
  if (!rules_.interactions.empty()) {
    left.path = parent.path;
    left.path.push_back(split.feature);
    right.path = left.path;
  }
  parent.children.push_back(std::move(left));
  parent.children.push_back(std::move(right));
  return true;
}

// Makes the children of a node and finds their questions. Several nodes may be prepared at once;
// they only share what is read.
void TreeBuilder::prepare(Node& parent, bool searches) {
  divide(parent);
  // Where columns are drawn by the names of nodes, a node is prepared just before it is asked.
  parent.children[0].index = static_cast<NodeIndex>(tree_.size());
  parent.children[1].index = static_cast<NodeIndex>(tree_.size() + 1);
  if (searches) search_children(parent);
}

void TreeBuilder::search_children(Node& parent) {
  Node& left = parent.children[0];
  Node& right = parent.children[1];
  const bool search_left = may_split(left);
  const bool search_right = may_split(right);
  // No histogram where no question will be asked.
  if (search_left || search_right) make_histograms(parent);
  if (search_left && search_right && !limits_columns()) {
    // Two searches at once where one alone would not be worth a second thread.
    const double work = std::max(split_work(matrix_, left.end - left.begin, left.slot >= 0),
                                 split_work(matrix_, right.end - right.begin, right.slot >= 0));
    const int alone = worthwhile_threads(work, n_threads_, true);
    const int both = alone > 1 ? 1 : worthwhile_threads(2 * work, n_threads_, true);
    parallel_for(2, both, [&](std::size_t i, int) { search(i == 0 ? left : right); });
  } else {
    if (search_left) search(left);
    if (search_right) search(right);
  }
}

// Prepares the leaf that is parted next and, where one leaf is too little work for all threads,
// those that will most likely follow: their turn comes unless the tree is full before.
void TreeBuilder::prepare_some(std::size_t next) {
  const std::size_t left_over = rules_.max_leaves - nodes_.size();
  std::vector<Node*> batch{&nodes_[next]};
  const auto is_small = [](const Node& node) { return node.end - node.begin <= few_to_share; };
  if (n_threads_ > 1 && !limits_columns() && left_over > 1 && is_small(nodes_[next])) {
    const auto threads = static_cast<std::size_t>(n_threads_);
    const std::size_t wanted = std::min(left_over, left_over > 8 * threads ? 2 * threads : threads);
    while (batch.size() < wanted) {
      const std::size_t more = next_leaf(nodes_, [&](const Node& node) {
        return node.children.empty() && is_small(node) &&
               std::find(batch.begin(), batch.end(), &node) == batch.end();
      });
      if (more == nodes_.size()) break;
      batch.push_back(&nodes_[more]);
    }
  }
  for (Node* const node : batch) {
    if (node->slot >= 0) node->spare = take_slot();
  }
  const auto prepare_one = [&](std::size_t i, int) { prepare(*batch[i], left_over > 1); };
  if (batch.size() == 1) {
    prepare_one(0, 0);
  } else {
    parallel_for(batch.size(), n_threads_, prepare_one);
  }
  for (Node* const node : batch) {
    release(node->spare);
    release(node->slot);
    for (Node& child : node->children) {
      if (!child.split.found()) release(child.slot);
    }
  }
}

// Puts a node's question and its children into the tree.
void TreeBuilder::commit(std::size_t which) {
  Node parent = std::move(nodes_[which]);
  const auto at = static_cast<std::size_t>(parent.index);
  write_question(at, matrix_.column(parent.split.feature), parent.split);
  questions_[at] = parent.split;
  std::vector<Node> children = std::move(parent.children);
  for (Node& child : children) {
    child.index = tree_.add_leaf(0, 0, 0);
    describe(static_cast<std::size_t>(child.index), unpack(child.total, scale_), child.bounds,
             child.end - child.begin);
  }
  questions_.resize(tree_.size());
  tree_.left[at] = children[0].index;
  tree_.right[at] = children[1].index;
  tree_.max_depth = std::max(tree_.max_depth, static_cast<std::int32_t>(children[0].depth));
  nodes_[which] = std::move(children[0]);
  nodes_.push_back(std::move(children[1]));
}

void TreeBuilder::grow(std::uint64_t number, const Row* rows, std::size_t n_rows,
                       const Derivatives& of, const RowWeights& weights, bool constant_hessian,
                       Watch& watch) {
  number_ = number;
  tree_.clear();
  nodes_.clear();
  leaves_.clear();
  questions_.clear();
  free_slots_.clear();
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    free_slots_.push_back(static_cast<std::int32_t>(slot));
  }
  for (int buffer = 0; buffer < 2; ++buffer) {
    rows_[buffer].resize(n_rows);
    packed_[buffer].resize(n_rows);
  }
  goes_left_.resize(n_rows);
  all_rows_ = rows == nullptr;
  all_rows_n_ = n_rows;
  if (!all_rows_) std::copy(rows, rows + n_rows, rows_[0].begin());
  weights_ = weights;
  scale_ =
      pack_gradients(of, weights, rows, n_rows, constant_hessian, n_threads_, packed_[0].data());
  draw_tree_columns(matrix_.n_features());

  Node root;
  root.end = n_rows;
  for (const PackedSum sum : packed_[0]) root.total += sum;
  root.index = tree_.add_leaf(0, 0, 0);
  describe(0, unpack(root.total, scale_), root.bounds, n_rows);
  questions_.resize(1);
  const bool by_level = rules_.growth == Growth::oblivious;
  if (may_split(root) && rules_.max_leaves > 1) {
    if (by_level || n_rows > few_node_rows) root.slot = take_slot();
    if (root.slot >= 0) {
      histograms_.build(rows_of(root), packed_[0].data(), n_rows, histogram(root.slot));
    }
    if (!by_level) search(root);
  }
  nodes_.push_back(std::move(root));
  if (by_level) {
    grow_by_level(watch);
  } else {
    grow_by_gain(watch);
  }
  for (const Node& node : nodes_) {
    leaves_.push_back({node.index, node.begin, node.end, rows_of(node), node.bounds});
  }
}

// One question a level, asked of all nodes that it leaves enough rows on both sides.
void TreeBuilder::grow_by_level(Watch& watch) {
  level_limit_ = std::min<std::size_t>(rules_.max_depth, std::bit_width(rules_.max_leaves) - 1);
  for (std::size_t depth = 0; depth < level_limit_; ++depth) {
    std::vector<std::size_t> asked;
    std::vector<NodeToSplit> tasks;
    const std::uint8_t* allowed = nullptr;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].slot < 0 || !may_split(nodes_[i])) continue;
      if (asked.empty())
        allowed =
            allowed_columns(matrix_.n_features(), nodes_[i].depth, nodes_[i].index, nodes_[i].path);
      asked.push_back(i);
      tasks.push_back(task_of(nodes_[i]));
      tasks.back().allowed = allowed;
    }
    if (asked.empty()) break;
    watch.poll(all_rows_n_ * matrix_.n_features());
    const BinSplit split = find_common_split(matrix_, tasks, nullptr, rules_.split, n_threads_);
    if (!split.found()) break;
    bool parted = false;
    for (std::size_t i = 0; i < asked.size(); ++i) {
      Node& node = nodes_[asked[i]];
      node.split = split;
      node.split.left = left_sum(matrix_, tasks[i], split);
      const std::int8_t sign =
          rules_.split.monotonic.empty() ? std::int8_t{0} : rules_.split.monotonic[split.feature];
      node.split.gain = gain_of(tasks[i], node.split.left, sign, rules_.split.l2, rules_.split);
      // A node that the question does not help may still be divided by it; one that it must not
      // divide (by its weights, or by a constraint) is not.
      const Sums left = unpack(node.split.left, scale_);
      const Sums right = unpack(node.total - node.split.left, scale_);
      const bool heavy = std::min(left.hessian, right.hessian) >= rules_.split.min_hessian;
      if (!heavy || (sign != 0 && node.split.gain == 0)) continue;
      if (!divide(node)) continue;
      if (depth + 1 < level_limit_) {
        node.spare = take_slot();
        make_histograms(node);
      }
      release(node.spare);
      release(node.slot);
      commit(asked[i]);
      parted = true;
    }
    if (!parted) break;
  }
}

void TreeBuilder::grow_by_gain(Watch& watch) {
  while (nodes_.size() < rules_.max_leaves) {
    const std::size_t next = next_leaf(nodes_);
    if (next == nodes_.size()) break;
    watch.poll((nodes_[next].end - nodes_[next].begin) * matrix_.n_features());
    if (nodes_[next].children.empty()) prepare_some(next);
    commit(next);
  }
}

void TreeBuilder::find_leaves(const RowMatrix& other, const Row* rows, std::size_t n,
                              NodeIndex* out) const {
  follow_codes(static_cast<const BinnedMatrix&>(other), matrix_, questions_, rows, n, n_threads_,
               out);
}

}  // namespace spinney
