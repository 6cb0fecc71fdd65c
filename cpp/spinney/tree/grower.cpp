#include "spinney/tree/grower.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "spinney/common/check.h"
#include "spinney/common/parallel.h"
#include "spinney/common/random.h"
#include "spinney/tree/presorted_table.h"
#include "spinney/tree/search.h"

namespace spinney::tree {

using common::NodeIndex;
using common::parallel_for;
using common::Row;
using common::Watch;
using forest::mark_category;
using forest::no_categories;
using forest::no_child;
using forest::Tree;
using forest::words_for;

namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();

// Threads share a node only if its estimated work exceeds this number of nanoseconds; one thread
// grows each smaller subtree.
constexpr double shared_work = 300'000;

std::vector<Row> rows_with_weight(const criterion::Targets& targets) {
  std::vector<Row> rows;
  rows.reserve(targets.n_rows);
  for (std::size_t row = 0; row < targets.n_rows; ++row) {
    if (targets.weights == nullptr || targets.weights[row] != 0.0) {
      rows.push_back(static_cast<Row>(row));
    }
  }
  return rows;
}

table::EntryLayout layout_for(const table::Table& table, const criterion::Targets& targets,
                              criterion::CriterionKind criterion) {
  const bool labelled = criterion::is_classification(criterion) && targets.n_outputs == 1;
  return table::EntryLayout::make(table::largest_code(table), labelled ? targets.n_classes[0] : 0);
}

class Grower {
 public:
  // prepared: null for a single tree, which uses the presorted search if it searches all columns.
  Grower(const table::Table& table, const PreparedTable* prepared,
         const criterion::Targets& targets, const GrowOptions& options, Watch& watch)
      : table_(table), options_(options), watch_(watch) {
    layout_ = layout_for(table, targets, options.criterion);
    prepare_criterion(targets);
    SearchInputs inputs{table, targets, options, layout_, *criterion_, rows_with_weight(targets)};
    const bool all_features = options.max_features == 0 ||
                              options.max_features >= static_cast<std::int64_t>(table.n_features());
    if (prepared == nullptr && !options.random_splits && all_features) {
      search_ = make_presorted_search(std::move(inputs));
      return;
    }
    if (prepared == nullptr) {
      prepared_ = std::make_unique<PreparedTable>(table, options.random_splits, options.n_threads);
      prepared = prepared_.get();
    }
    search_ = options.random_splits ? make_random_search(std::move(inputs), *prepared)
                                    : make_sampled_search(std::move(inputs), *prepared);
  }

  Grower(const PresortedTable& presorted, const criterion::Targets& targets,
         const GrowOptions& options, Watch& watch)
      : table_(presorted.table), options_(options), watch_(watch), layout_(presorted.layout) {
    prepare_criterion(targets);
    search_ = make_presorted_search(
        {table_, targets, options, layout_, *criterion_, presorted.rows}, &presorted.columns);
  }

  void take_rows(std::vector<Row>& rows) { std::swap(rows, search_->rows()); }
  // Uses the buffers of a thread that grows many trees.
  void use(TreeScratch& scratch) { scratch_ = &scratch; }

  Tree grow() {
    Node root;
    root.end = static_cast<Row>(search_->rows().size());
    root.key = common::mix(options_.seed);
    root.stat.resize(criterion_->stat_size());
    search_->sum(root, root.stat.data());
    root.impurity = criterion_->impurity(root.stat.data());
    total_weight_ = root.weight();
    root.terminal = is_terminal(root);
    search_->open(root);
    if (options_.max_leaf_nodes > 0) return grow_best_first(std::move(root));
    return grow_depth_first(std::move(root));
  }

 private:
  void prepare_criterion(const criterion::Targets& targets) {
    criterion_ = criterion::make_criterion(options_.criterion, targets, layout_);
    for (const std::uint32_t k : targets.n_classes) n_values_ = std::max<std::size_t>(n_values_, k);
    n_values_ *= targets.n_outputs;
  }

  Worker make_worker(int n_threads) const {
    Worker worker;
    worker.scans.resize(static_cast<std::size_t>(n_threads));
    return worker;
  }

  Tree empty_tree() const {
    Tree tree;
    tree.value_size = n_values_;
    return tree;
  }

  bool is_terminal(const Node& node) const {
    const std::int64_t n = node.n_rows();
    return node.depth >= options_.max_depth || n < options_.min_samples_split ||
           n < 2 * options_.min_samples_leaf || node.weight() < 2 * options_.min_weight_leaf ||
           node.impurity <= epsilon;
  }

  // Appends the node as a leaf; write_split may turn it into an inner node.
  NodeIndex write(const Node& node, Tree& tree) const {
    const NodeIndex index = tree.add_leaf(node.impurity, node.n_rows(), node.weight());
    double* value = tree.value.data() + static_cast<std::size_t>(index) * n_values_;
    criterion_->value(node.stat.data(), value);
    if (!options_.monotonic_cst.empty()) {
      value[0] = std::clamp(value[0], node.lower, node.upper);
      if (n_values_ == 2) value[1] = 1 - value[0];
    }
    if (node.parent >= 0) {
      auto& children = node.is_left ? tree.left : tree.right;
      children[static_cast<std::size_t>(node.parent)] = index;
    }
    tree.max_depth = std::max(tree.max_depth, static_cast<std::int32_t>(node.depth));
    return index;
  }

  void write_split(const criterion::Split& split, NodeIndex index, Tree& tree) const {
    const auto at = static_cast<std::size_t>(index);
    tree.feature[at] = split.feature;
    tree.threshold[at] = search_->threshold(split);
    tree.missing_left[at] = split.missing_left;
  }

  // Writes the bit sets of a categorical split. Categories absent from the node follow the larger
  // child, or the tree's order of categories if it has one.
  void write_categories(const criterion::Split& split, const Node& node, const Node& left,
                        NodeIndex index, Tree& tree) const {
    const table::Column& column = table_.columns[static_cast<std::size_t>(split.feature)];
    const std::size_t n_words = words_for(column.n_categories);
    const std::size_t start = tree.category_bits.size();
    tree.category_start[static_cast<std::size_t>(index)] = static_cast<std::int64_t>(start);
    tree.category_bits.resize(start + 2 * n_words);
    std::uint32_t* goes_left = tree.category_bits.data() + start;
    std::uint32_t* seen = goes_left + n_words;
    const Row* rows = search_->rows().data();
    for (Row i = node.begin; i < node.end; ++i) {
      const std::int32_t code = column.category(rows[i]);
      if (code < 0) continue;
      mark_category(seen, static_cast<common::Code>(code));
      if (i < left.end) mark_category(goes_left, static_cast<common::Code>(code));
    }
    if (split.ordered) {
      for (const common::Code code : split.left_codes) {
        if (code < static_cast<common::Code>(column.n_categories)) mark_category(goes_left, code);
      }
    } else if (2 * left.n_rows() > node.n_rows()) {
      for (std::int32_t code = 0; code < column.n_categories; ++code) {
        if (((seen[code / 32] >> (code % 32)) & 1) == 0) {
          mark_category(goes_left, static_cast<common::Code>(code));
        }
      }
    }
  }

  // Creates the children of a split and partitions the rows; the caller partitions the columns.
  void make_children(const Node& node, criterion::Split& split, Worker& worker, Node& left,
                     Node& right) const {
    search_->partition_rows(node, split, worker);
    left.begin = node.begin;
    left.end = right.begin = node.begin + split.n_left;
    right.end = node.end;
    left.is_left = true;
    right.is_left = false;
    for (Node* child : {&left, &right}) {
      child->depth = node.depth + 1;
      child->key = common::combine(node.key, child->is_left ? 1 : 2);
      child->lower = node.lower;
      child->upper = node.upper;
      child->constants = node.constants;
      child->stat.resize(criterion_->stat_size());
    }
    sum_children(node, left, right);
    for (Node* child : {&left, &right}) {
      child->impurity = criterion_->impurity(child->stat.data());
      child->terminal = is_terminal(*child);
    }
    const int sign = options_.monotonic_cst.empty()
                         ? 0
                         : options_.monotonic_cst[static_cast<std::size_t>(split.feature)];
    if (sign != 0) {
      const double middle = criterion_->bounded_value(left.stat.data()) / 2 +
                            criterion_->bounded_value(right.stat.data()) / 2;
      (sign > 0 ? left.upper : left.lower) = middle;
      (sign > 0 ? right.lower : right.upper) = middle;
    }
  }

  // Exact sums: stat(larger child) = stat(parent) − stat(smaller child).
  void sum_children(const Node& node, Node& left, Node& right) const {
    Node& smaller = left.n_rows() < right.n_rows() ? left : right;
    Node& larger = &smaller == &left ? right : left;
    search_->sum(smaller, smaller.stat.data());
    if (!criterion_->has_exact_sums()) {
      search_->sum(larger, larger.stat.data());
      return;
    }
    for (std::size_t k = 0; k < node.stat.size(); ++k) {
      larger.stat[k] = node.stat[k] - smaller.stat[k];
    }
  }

  double improvement(const Node& node, const Node& left, const Node& right) const {
    return node.weight() / total_weight_ *
           (node.impurity - right.weight() / node.weight() * right.impurity -
            left.weight() / node.weight() * left.impurity);
  }

  bool is_enough(double improvement) const {
    return improvement + epsilon >= options_.min_impurity_decrease;
  }

  // Writes the node. If it can be split, writes the split, fills the children and returns true.
  bool expand(Node& node, Tree& tree, Worker& worker, int n_threads, Node& left, Node& right) {
    watch_.poll(100 + static_cast<std::uint64_t>(search_->cost(node)));
    const NodeIndex index = write(node, tree);
    if (node.terminal) return false;
    criterion::Split& split = worker.split;
    split.clear();
    search_->find(node, worker, n_threads, split);
    if (!split.found()) return false;
    make_children(node, split, worker, left, right);
    if (!is_enough(improvement(node, left, right))) return false;
    write_split(split, index, tree);
    if (split.categorical) write_categories(split, node, left, index, tree);
    left.parent = right.parent = index;
    search_->partition_columns(node, left, right, worker, n_threads);
    return true;
  }

  // Grows the subtree below a node on this thread, in pre-order.
  void grow_subtree(Node root, Tree& tree, Worker& worker) {
    NodeStack stack;
    stack.push(std::move(root));
    Node node;
    Node left;
    Node right;
    while (!stack.empty()) {
      stack.pop(node);
      if (expand(node, tree, worker, 1, left, right)) {
        stack.push(std::move(right));
        stack.push(std::move(left));
      } else {
        watch_.advance(node.n_rows());
      }
    }
  }

  Tree grow_depth_first(Node root) {
    const int n_threads = options_.n_threads;
    Tree top = empty_tree();
    if (n_threads <= 1 || search_->cost(root) < shared_work) {
      if (scratch_ != nullptr) {
        std::swap(top, scratch_->tree);
        top.clear();
        top.value_size = n_values_;
        scratch_->worker->features.clear();
        grow_subtree(std::move(root), top, *scratch_->worker);
        return top;
      }
      Worker worker = make_worker(1);
      grow_subtree(std::move(root), top, worker);
      return top;
    }
    // All threads share each large node. Small descendants become subtrees, which one thread each
    // grows; assemble() inserts them afterwards.
    Worker shared = make_worker(n_threads);
    NodeStack stack;
    std::vector<Node> subtrees;
    const double own_thread =
        std::max(shared_work, search_->cost(root) / (8.0 * static_cast<double>(n_threads)));
    stack.push(std::move(root));
    std::vector<std::int32_t> subtree_at;  // by node of `top`: index of its subtree or −1
    Node node;
    Node left;
    Node right;
    while (!stack.empty()) {
      stack.pop(node);
      if (!node.terminal && search_->cost(node) < own_thread) {
        const NodeIndex index = write(node, top);
        subtree_at.resize(top.size(), -1);
        subtree_at[static_cast<std::size_t>(index)] = static_cast<std::int32_t>(subtrees.size());
        node.parent = no_child;
        subtrees.push_back(std::move(node));
        node = Node();
      } else if (expand(node, top, shared, n_threads, left, right)) {
        stack.push(std::move(right));
        stack.push(std::move(left));
      } else {
        watch_.advance(node.n_rows());
      }
    }
    subtree_at.resize(top.size(), -1);
    // Largest first, so that no thread starts a large subtree at the end.
    std::vector<std::size_t> order(subtrees.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return subtrees[a].n_rows() > subtrees[b].n_rows();
    });
    std::vector<Tree> grown(subtrees.size(), empty_tree());
    std::vector<Worker> workers;
    for (int t = 0; t < n_threads; ++t) workers.push_back(make_worker(1));
    parallel_for(order.size(), n_threads, [&](std::size_t task, int worker) {
      const std::size_t i = order[task];
      grow_subtree(std::move(subtrees[i]), grown[i], workers[static_cast<std::size_t>(worker)]);
    });
    return assemble(top, subtree_at, grown);
  }

  std::size_t category_words(const Tree& tree, std::size_t node) const {
    if (tree.category_start[node] == no_categories) return 0;
    return words_for(table_.columns[static_cast<std::size_t>(tree.feature[node])].n_categories);
  }

  // Joins the top and its subtrees to one tree in pre-order.
  Tree assemble(const Tree& top, const std::vector<std::int32_t>& subtree_at,
                const std::vector<Tree>& grown) const {
    Tree tree = empty_tree();
    struct Visit {
      const Tree* from;
      std::size_t node;
      NodeIndex parent;
      bool is_left;
    };
    tree.max_depth = top.max_depth;
    for (const Tree& subtree : grown) tree.max_depth = std::max(tree.max_depth, subtree.max_depth);
    std::vector<Visit> stack{{&top, 0, no_child, false}};
    while (!stack.empty()) {
      Visit visit = stack.back();
      stack.pop_back();
      if (visit.from == &top && subtree_at[visit.node] >= 0) {
        visit.from = &grown[static_cast<std::size_t>(subtree_at[visit.node])];
        visit.node = 0;
      }
      const Tree& from = *visit.from;
      const NodeIndex index = tree.copy_node(from, visit.node, category_words(from, visit.node));
      if (visit.parent >= 0) {
        auto& children = visit.is_left ? tree.left : tree.right;
        children[static_cast<std::size_t>(visit.parent)] = index;
      }
      if (from.left[visit.node] == no_child) continue;
      stack.push_back({visit.from, static_cast<std::size_t>(from.right[visit.node]), index, false});
      stack.push_back({visit.from, static_cast<std::size_t>(from.left[visit.node]), index, true});
    }
    return tree;
  }

  // A leaf in the priority queue of best-first growth, with its best split and its children.
  struct Candidate {
    Node node;
    Node left;
    Node right;
    criterion::Split split;
    NodeIndex index = no_child;
    double improvement = 0;
    std::uint64_t order = 0;
  };
  // The older of equal improvements is split first.
  static bool is_worse(const std::unique_ptr<Candidate>& a, const std::unique_ptr<Candidate>& b) {
    return a->improvement < b->improvement ||
           (a->improvement == b->improvement && a->order > b->order);
  }

  Tree grow_best_first(Node root) {
    Tree tree = empty_tree();
    Worker worker = make_worker(options_.n_threads);
    const auto threads_for = [&](const Node& node) {
      return search_->cost(node) < shared_work ? 1 : options_.n_threads;
    };
    std::vector<std::unique_ptr<Candidate>> frontier;
    std::uint64_t order = 0;
    const auto add = [&](Node&& node) {
      watch_.poll(100 + static_cast<std::uint64_t>(search_->cost(node)));
      const NodeIndex index = write(node, tree);
      if (node.terminal) return;
      auto candidate = std::make_unique<Candidate>();
      candidate->index = index;
      candidate->order = order++;
      candidate->node = std::move(node);
      Node& at = candidate->node;
      search_->find(at, worker, threads_for(at), candidate->split);
      if (!candidate->split.found()) return;
      make_children(at, candidate->split, worker, candidate->left, candidate->right);
      candidate->improvement = improvement(at, candidate->left, candidate->right);
      if (!is_enough(candidate->improvement)) return;
      frontier.push_back(std::move(candidate));
      std::push_heap(frontier.begin(), frontier.end(), is_worse);
    };
    add(std::move(root));
    for (std::int64_t leaves = 1; leaves < options_.max_leaf_nodes && !frontier.empty(); ++leaves) {
      std::pop_heap(frontier.begin(), frontier.end(), is_worse);
      const std::unique_ptr<Candidate> best = std::move(frontier.back());
      frontier.pop_back();
      write_split(best->split, best->index, tree);
      if (best->split.categorical) {
        write_categories(best->split, best->node, best->left, best->index, tree);
      }
      best->left.parent = best->right.parent = best->index;
      search_->partition_columns(best->node, best->left, best->right, worker,
                                 threads_for(best->node));
      add(std::move(best->left));
      add(std::move(best->right));
    }
    return tree;
  }

  const table::Table& table_;
  const GrowOptions& options_;
  Watch& watch_;
  TreeScratch* scratch_ = nullptr;
  table::EntryLayout layout_;
  std::unique_ptr<PreparedTable> prepared_;  // null if the caller has one
  std::unique_ptr<criterion::Criterion> criterion_;
  std::unique_ptr<Search> search_;
  std::size_t n_values_ = 1;
  double total_weight_ = 0;
};

}  // namespace

void GrowOptions::check() const {
  common::require_at_least<std::int64_t>("max_depth", max_depth, 1);
  common::require_at_least<std::int64_t>("min_samples_split", min_samples_split, 2);
  common::require_at_least<std::int64_t>("min_samples_leaf", min_samples_leaf, 1);
  common::require_at_least("min_weight_leaf", min_weight_leaf, 0.0);
  common::require_at_least<std::int64_t>("max_features", max_features, 0);
  common::require_at_least<std::int64_t>("max_leaf_nodes", max_leaf_nodes, 0);
  common::require_at_least("min_impurity_decrease", min_impurity_decrease, 0.0);
  common::require_at_least("n_threads", n_threads, 1);
  for (const std::int8_t sign : monotonic_cst) {
    if (sign < -1 || sign > 1) {
      throw common::InputError("monotonic_cst must contain only -1, 0 and 1; got " +
                               std::to_string(sign));
    }
  }
}

Tree grow_tree(const table::Table& table, const criterion::Targets& targets,
               const GrowOptions& options, Watch& watch) {
  return Grower(table, nullptr, targets, options, watch).grow();
}

PresortedTable::PresortedTable(const table::Table& table_, const criterion::Targets& targets,
                               criterion::CriterionKind criterion, int n_threads)
    : table(table_),
      rows(rows_with_weight(targets)),
      layout(layout_for(table_, targets, criterion)) {
  const table::CodingRows sample{rows.data(), static_cast<Row>(rows.size()),
                                 layout.label_bits > 0 ? targets.labels : nullptr};
  const bool additive = criterion::make_criterion(criterion, targets, layout)->is_additive();
  columns = table::code_table(table, sample, layout, additive, n_threads);
}

TreeScratch::TreeScratch() : worker(std::make_unique<Worker>()) { worker->scans.resize(1); }
TreeScratch::~TreeScratch() = default;
TreeScratch::TreeScratch(TreeScratch&&) noexcept = default;

void grow_tree(const PresortedTable& presorted, const criterion::Targets& targets,
               const GrowOptions& options, Watch& watch, TreeScratch& scratch) {
  Grower grower(presorted, targets, options, watch);
  grower.use(scratch);
  scratch.tree = grower.grow();
  grower.take_rows(scratch.rows);
}

void grow_tree(const PreparedTable& prepared, const criterion::Targets& targets,
               const GrowOptions& options, Watch& watch, TreeScratch& scratch) {
  Grower grower(prepared.table, &prepared, targets, options, watch);
  grower.use(scratch);
  scratch.tree = grower.grow();
  grower.take_rows(scratch.rows);
}

}  // namespace spinney::tree
