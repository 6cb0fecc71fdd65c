// How TreeBuilder grows a tree together with other workers that have other rows. Every worker
// divides its own rows and counts them; sums over all workers decide, and all decide the same.
// Each exchange has to travel, so several leaves are prepared for one: those whose turn will come
// unless the tree is full before. The tree is the one that a single worker would grow.
#include <algorithm>
#include <bit>

#include "spinney/boosting/common_split.h"
#include "spinney/boosting/tree_builder.h"

namespace spinney::boosting {

void TreeBuilder::start_together(Node& root) {
  const std::size_t n_codes = matrix_.n_codes();
  message_.resize(2 + n_codes);
  message_[0] = root.total;
  message_[1] = static_cast<std::int64_t>(count_own_rows(root));
  histograms_.build(rows_of(root), sums_of(root), root.end - root.begin, message_.data() + 2);
  company_.exchange->add(message_.data(), message_.size());
  root.total = message_[0];
  root.n_counted = static_cast<std::uint64_t>(message_[1]);
  root.n_all = scale_.n_rows;
  if (!may_split(root) || rules_.max_leaf_nodes < 2) return;
  root.histogram = take_histogram();
  std::copy_n(message_.data() + 2, n_codes, root.histogram);
  if (rules_.growth != Growth::oblivious) search_together({&root});
}

// Divides the rows of nodes between their children and tells these what they have everywhere. Of
// children that are to ask, the lighter is counted, the other has what is left of the parent. A
// node whose question leaves a side too few rows has another one afterwards, or none, and no
// children; what that takes to know travels along.
void TreeBuilder::part_together(const std::vector<Node*>& parents) {
  const std::size_t n_codes = matrix_.n_codes();
  const auto lighter = [](const Node& parent) -> Node& {
    const bool left = hessian_units(parent.left->total) <= hessian_units(parent.right->total);
    return left ? *parent.left : *parent.right;
  };
  std::size_t size = 0;
  for (const Node* const parent : parents) {
    size += 2 + 256 * parent->open.doubts.size() + (parent->children_ask ? n_codes : 0);
  }
  message_.resize(size);
  std::int64_t* at = message_.data();
  for (Node* const parent : parents) {
    part_rows(*parent);
    parent->was_parted = true;
    inherit(*parent);
    *at++ = static_cast<std::int64_t>(parent->left->end - parent->left->begin);
    *at++ = static_cast<std::int64_t>(count_own_rows(*parent->left));
    if (!parent->open.doubts.empty()) {
      count_doubts(matrix_, task_of(*parent), scale_, rules_.split, parent->open, at);
      at += 256 * parent->open.doubts.size();
    }
    if (!parent->children_ask) continue;
    const Node& small = lighter(*parent);
    histograms_.build(rows_of(small), sums_of(small), small.end - small.begin, at);
    at += n_codes;
  }
  company_.exchange->add(message_.data(), message_.size());
  at = message_.data();
  for (Node* const parent : parents) {
    Node& left = *parent->left;
    Node& right = *parent->right;
    left.n_all = static_cast<std::uint64_t>(*at++);
    left.n_counted = static_cast<std::uint64_t>(*at++);
    right.n_all = parent->n_all - left.n_all;
    right.n_counted = parent->n_counted - left.n_counted;
    const std::size_t n_doubts = 256 * parent->open.doubts.size();
    if (n_doubts > 0 && !has_enough(*parent)) {
      settle_doubts(matrix_, task_of(*parent), scale_, rules_.split, at, parent->open);
      parent->split = parent->open.split;
      parent->left = parent->right = nullptr;
      change_turn(*parent);
      at += n_doubts + (parent->children_ask ? n_codes : 0);
      continue;
    }
    at += n_doubts;
    parent->open = {};
    if (!parent->children_ask) continue;
    Node& small = lighter(*parent);
    Node& large = &small == &left ? right : left;
    small.histogram = take_histogram();
    std::copy_n(at, n_codes, small.histogram);
    std::swap(large.histogram, parent->histogram);
    for (std::size_t i = 0; i < n_codes; ++i) large.histogram[i] -= at[i];
    at += n_codes;
  }
}

// A node has another question than before, or none; it may have a turn already.
void TreeBuilder::change_turn(const Node& node) {
  const auto at = std::find_if(waiting_.begin(), waiting_.end(),
                               [&](const Turn& turn) { return turn.node == &node; });
  if (at == waiting_.end()) return;
  if (node.split.found()) {
    at->gain = node.split.gain;
  } else {
    waiting_.erase(at);
  }
  std::make_heap(waiting_.begin(), waiting_.end(),
                 [this](const Turn& a, const Turn& b) { return later(a, b); });
}

// A node stays a leaf: it has its histogram again.
void TreeBuilder::take_back(Node& parent) {
  if (!parent.children_ask) return;
  PackedSum*& left = parent.left->histogram;
  PackedSum*& right = parent.right->histogram;
  for (std::size_t i = 0; i < matrix_.n_codes(); ++i) left[i] += right[i];
  std::swap(parent.histogram, left);
  release(right);
}

void TreeBuilder::search_together(const std::vector<Node*>& nodes) {
  for (Node* const node : nodes) {
    if (!may_split(*node)) continue;
    NodeToSplit task = task_of(*node);
    const std::vector<std::uint8_t> allowed =
        allowed_columns(matrix_.n_features(), node->depth, node->name, node->path);
    task.allowed = marks(allowed);
    node->open = find_open_split(matrix_, task, scale_, rules_.split, n_threads_);
    node->split = node->open.split;
  }
}

// The leaves whose children are to be prepared next. The tree is grown in thought, as far as nodes
// are prepared: those whose turn would come, unless children that nobody knows come before them,
// are prepared now, the first ones. What is prepared in vain costs a histogram, what is not costs
// an exchange.
std::vector<TreeBuilder::Node*> TreeBuilder::take_several() {
  struct Prospect {
    Node* node;
    std::size_t n_before;  // nodes that are parted before it for certain
  };
  const std::size_t left_over = rules_.max_leaf_nodes - n_leaves_;
  std::vector<Turn> turns = waiting_;
  std::vector<Prospect> candidates;
  std::size_t n_sure = 0;
  // Of equal gains the first in the tree comes first: children that are not in it yet come last.
  auto index = static_cast<common::NodeIndex>(tree_.size());
  for (std::size_t i = 0; i < left_over && !turns.empty(); ++i) {
    Node* const node = pop(turns);
    if (!node->prepared) candidates.push_back({node, n_sure});
    n_sure += node->open.doubts.empty() ? 1 : 0;
    if (!node->prepared) continue;
    for (Node* const child : {node->left, node->right}) {
      if (child->split.found()) push(turns, {child->split.gain, child->depth, index, child});
      ++index;
    }
  }
  const std::size_t many = (2 * candidates.size() + 2) / 3;
  std::vector<Node*> taken;
  for (const Prospect& candidate : candidates) {
    Node& node = *candidate.node;
    if (taken.size() == many) break;
    add_children(node);
    // So many come before it that its children may never be asked.
    node.children_ask = left_over > 1 + candidate.n_before;
    taken.push_back(&node);
  }
  return taken;
}

// Grandchildren that were made in vain lie where a node had its rows: it takes them back, in
// whatever order, from its children.
void TreeBuilder::recover_rows(const Node& node) {
  bool overwritten = false;
  for (const Node* const child : {node.left, node.right}) {
    if (child->prepared) recover_rows(*child);
    overwritten |= child->was_parted;
  }
  if (!overwritten) return;
  const common::Row* const from = rows_[1 - node.buffer].data();
  std::copy(from + node.begin, from + node.end, rows_[node.buffer].data() + node.begin);
}

void TreeBuilder::grow_by_gain_together(common::Watch& watch) {
  for (;;) {
    commit_prepared();
    const std::vector<Node*> taken = take_several();
    if (taken.empty()) break;
    watch.poll(all_rows_n_ * matrix_.n_features());
    part_together(taken);
    std::vector<Node*> children;
    for (const Node* const node : taken) {
      if (node->left == nullptr || !node->children_ask) continue;
      children.push_back(node->left);
      children.push_back(node->right);
    }
    search_together(children);
    for (Node* const node : taken) {
      if (node->left != nullptr) finish(*node);
    }
  }
  if (stays_in_place()) return;
  for (const Node& node : nodes_) {
    if (node.is_leaf && node.prepared) recover_rows(node);
  }
}

void TreeBuilder::grow_by_level_together(common::Watch& watch) {
  level_limit_ = std::min<std::size_t>(rules_.max_depth, std::bit_width(rules_.max_leaf_nodes) - 1);
  std::vector<Node*> asked;
  for (std::size_t depth = 0; depth < level_limit_; ++depth) {
    if (!ask_level(depth, watch, asked).found() || asked.empty()) break;
    for (Node* const node : asked) {
      add_children(*node);
      node->children_ask = depth + 1 < level_limit_;
    }
    part_together(asked);
    bool parted = false;
    for (Node* const node : asked) {
      if (!has_enough(*node)) {
        take_back(*node);
        continue;
      }
      release(node->histogram);
      commit(*node);
      parted = true;
    }
    if (!parted) break;
  }
}

}  // namespace spinney::boosting
