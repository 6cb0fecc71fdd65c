#include "spinney/tree/counted_grower.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "spinney/common/parallel.h"
#include "spinney/common/random.h"
#include "spinney/tree/search.h"

namespace spinney::tree {

using common::Code;
using common::parallel_for;
using common::Row;
using common::worthwhile_threads;
using forest::mark_category;
using forest::no_child;
using forest::words_for;

namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();
constexpr std::int64_t max_levels = 4;
constexpr Row block_rows = 4096;
// Units per weight of 1. Weights sum to about 1, so that the sum of units fits 64 bits.
constexpr double unit = 0x1p61;

std::int64_t to_units(double weight) { return static_cast<std::int64_t>(weight * unit + 0.5); }

}  // namespace

bool CountedGrower::supports(const table::Table& table, const criterion::Targets& targets,
                             const GrowOptions& options) {
  const bool all_columns = options.max_features == 0 ||
                           options.max_features >= static_cast<std::int64_t>(table.n_features());
  const bool two_classes = targets.n_classes[0] == 2;
  for (const table::Column& column : table.columns) {
    if (column.kind == table::ColumnKind::categorical && !two_classes) return false;
  }
  return options.criterion == criterion::CriterionKind::gini && all_columns &&
         options.features.empty() && !options.random_splits && options.max_depth <= max_levels &&
         options.max_leaf_nodes == 0 && options.monotonic_cst.empty() && targets.n_outputs == 1 &&
         CountedTable::fits(table, targets);
}

CountedGrower::CountedGrower(const table::Table& table, const criterion::Targets& targets,
                             const GrowOptions& options, double* weights)
    : table_(table),
      targets_(targets),
      options_(options),
      weights_(weights),
      counted_(table, targets, options.n_threads),
      n_classes_(targets.n_classes[0]),
      units_(targets.n_rows),
      classes_(n_classes_),
      rows_(counted_.rows),
      node_of_(targets.n_rows),
      order_(table.n_features()),
      kept_(table.n_features()),
      scratches_(static_cast<std::size_t>(options.n_threads)) {
  criterion_ =
      criterion::make_criterion(criterion::CriterionKind::gini, targets_, table::EntryLayout{});
  for (const Row row : rows_) {
    units_[row] = to_units(weights_[row]);
    classes_[targets_.labels[row]] += units_[row];
  }
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  const auto work = [&](std::size_t f) {
    const CountedColumn& column = counted_.columns[f];
    return column.n_codes() + (column.has_common ? column.others.size() : rows_.size());
  };
  std::stable_sort(order_.begin(), order_.end(),
                   [&](std::size_t a, std::size_t b) { return work(a) > work(b); });
  // Columns with few codes keep their sums, up to about the memory of the table.
  if (options.max_depth < 2 || counts_rows()) return;
  const std::size_t n_slots = std::size_t{1} << (options.max_depth - 1);
  constexpr std::size_t min_kept = 1 << 21;
  std::size_t left = std::max(min_kept, targets.n_rows * n_columns()) / n_slots;
  std::vector<std::size_t> by_size = order_;
  std::stable_sort(by_size.begin(), by_size.end(), [&](std::size_t a, std::size_t b) {
    return counted_.columns[a].n_codes() < counted_.columns[b].n_codes();
  });
  for (const std::size_t f : by_size) {
    const std::size_t n_cells = counted_.columns[f].n_codes() * n_classes_;
    if (n_cells > left) break;
    left -= n_cells;
    kept_[f].resize(n_slots * n_cells);
  }
}

int CountedGrower::threads_for(double nanoseconds) const {
  return worthwhile_threads(nanoseconds, options_.n_threads, true);
}

void CountedGrower::grow(std::uint64_t seed, common::Watch& watch) {
  nodes_.clear();
  add_root(seed);
  std::vector<std::size_t> parents;  // parents of the current level; empty at the root
  open_.assign(nodes_[0].terminal ? 0 : 1, 0);
  while (!open_.empty()) {
    watch.poll(static_cast<std::uint64_t>(rows_.size() * n_columns()));
    find(parents);
    parents.clear();
    for (const std::size_t node : open_) {
      if (choose(node)) parents.push_back(node);
    }
    partition(parents);
    open_.clear();
    for (const std::size_t parent : parents) {
      for (const std::size_t child : {nodes_[parent].left, nodes_[parent].right}) {
        if (!nodes_[child].terminal) open_.push_back(child);
      }
    }
  }
  tree_.clear();
  tree_.value_size = n_classes_;
  tree_sums_.clear();
  write(0, no_child, false);
}

void CountedGrower::add_root(std::uint64_t seed) {
  nodes_.emplace_back();
  Node& root = nodes_.back();
  root.key = common::mix(seed);
  root.sums = classes_;
  root.n_rows = static_cast<Row>(rows_.size());
  for (Row begin = 0; begin < root.n_rows; begin += std::min(block_rows, root.n_rows - begin)) {
    root.segments.push_back({begin, begin + std::min(block_rows, root.n_rows - begin)});
  }
  complete(root);
  total_weight_ = root.stat[0];
}

// Derives stat, impurity and terminal from a node's sums and rows.
void CountedGrower::complete(Node& node) const {
  node.stat.resize(1 + n_classes_);
  std::int64_t all = 0;
  for (std::size_t k = 0; k < n_classes_; ++k) {
    all += node.sums[k];
    node.stat[1 + k] = static_cast<double>(node.sums[k]) / unit;
  }
  node.stat[0] = static_cast<double>(all) / unit;
  node.impurity = criterion_->impurity(node.stat.data());
  node.terminal = is_terminal(node);
}

bool CountedGrower::is_terminal(const Node& node) const {
  const std::int64_t n = node.n_rows;
  return node.depth >= options_.max_depth || n < options_.min_samples_split ||
         n < 2 * options_.min_samples_leaf || node.stat[0] < 2 * options_.min_weight_leaf ||
         node.impurity <= epsilon;
}

// ---------------------------------------------------------------------------------- search

void CountedGrower::find(const std::vector<std::size_t>& parents) {
  candidates_.resize(std::max(candidates_.size(), open_.size() * n_columns()));
  for (Scratch& scratch : scratches_) {
    scratch.best.assign(nodes_.size(), -std::numeric_limits<double>::infinity());
  }
  const double work = static_cast<double>(rows_.size()) * static_cast<double>(n_columns());
  parallel_for(n_columns(), threads_for(work), [&](std::size_t i, int thread) {
    find_in_column(order_[i], parents, scratches_[static_cast<std::size_t>(thread)]);
  });
}

void CountedGrower::find_in_column(std::size_t f, const std::vector<std::size_t>& parents,
                                   Scratch& scratch) {
  const CountedColumn& column = counted_.columns[f];
  const std::size_t n_cells = column.n_codes() * n_classes_;
  std::vector<std::int64_t>& kept = kept_[f];
  if (kept.empty()) {
    for (const std::size_t node : open_) {
      scratch.sums.assign(n_cells, 0);
      count(column, node, scratch.sums.data());
      scan_node(f, node, scratch.sums.data(), scratch);
    }
    return;
  }
  const auto slot_of = [&](std::size_t node) { return kept.data() + nodes_[node].slot * n_cells; };
  if (parents.empty()) {
    std::fill_n(kept.data(), n_cells, 0);
    count(column, 0, kept.data());
    scan_node(f, 0, kept.data(), scratch);
    return;
  }
  for (const std::size_t parent : parents) {
    const std::size_t smaller = nodes_[parent].smaller;
    const std::size_t larger =
        smaller == nodes_[parent].left ? nodes_[parent].right : nodes_[parent].left;
    if (nodes_[smaller].terminal && nodes_[larger].terminal) continue;
    std::int64_t* const of_smaller = slot_of(smaller);
    std::fill_n(of_smaller, n_cells, 0);
    count(column, smaller, of_smaller);
    if (!nodes_[smaller].terminal) scan_node(f, smaller, of_smaller, scratch);
    if (nodes_[larger].terminal) continue;
    std::int64_t* const of_larger = slot_of(larger);  // still holds the parent's sums
    for (std::size_t cell = 0; cell < n_cells; ++cell) of_larger[cell] -= of_smaller[cell];
    scan_node(f, larger, of_larger, scratch);
  }
}

// Sums the units of the node's rows by cell.
void CountedGrower::count(const CountedColumn& column, std::size_t node, std::int64_t* sums) const {
  const Node& of_node = nodes_[node];
  const std::uint32_t* const cells = column.cells.data();
  const std::int64_t* const units = units_.data();
  if (!column.has_common || column.others.size() > of_node.n_rows) {
    for (const Segment& segment : of_node.segments) {
      for (Row i = segment.begin; i < segment.end; ++i) sums[cells[rows_[i]]] += units[rows_[i]];
    }
    return;
  }
  if (node == 0) {
    for (const Row row : column.others) sums[cells[row]] += units[row];
  } else {
    for (const Row row : column.others) {
      sums[cells[row]] += node_of_[row] == node ? units[row] : 0;
    }
  }
  std::int64_t* const common = sums + column.common * n_classes_;
  for (std::size_t k = 0; k < n_classes_; ++k) {
    std::int64_t rest = of_node.sums[k];
    for (std::size_t code = 0; code < column.n_codes(); ++code) rest -= sums[code * n_classes_ + k];
    common[k] = rest;
  }
}

void CountedGrower::count_rows(const CountedColumn& column, std::size_t node,
                               std::vector<std::uint32_t>& counts) const {
  counts.assign(column.n_codes(), 0);
  const auto n_classes = static_cast<std::uint32_t>(n_classes_);
  for (const Segment& segment : nodes_[node].segments) {
    for (Row i = segment.begin; i < segment.end; ++i) ++counts[column.cells[rows_[i]] / n_classes];
  }
}

void CountedGrower::scan_node(std::size_t f, std::size_t node, const std::int64_t* sums,
                              Scratch& scratch) {
  const CountedColumn& column = counted_.columns[f];
  const auto at =
      static_cast<std::size_t>(std::find(open_.begin(), open_.end(), node) - open_.begin());
  Candidate& candidate = candidates_[at * n_columns() + f];
  candidate.score = -std::numeric_limits<double>::infinity();
  candidate.missing_left = candidate.only_missing_right = false;
  if (column.n_codes() < 2) return;
  if (counts_rows()) count_rows(column, node, scratch.counts);
  if (column.categorical) {
    scan_categorical(column, nodes_[node], sums, scratch, candidate);
  } else {
    scan_numeric(column, nodes_[node], sums, scratch, candidate);
  }
  candidate.score /= unit;
  if (!(candidate.score >= scratch.best[node])) return;
  sum_left(column, sums, candidate);
  // Scores above the perfect score count as equal: the first column wins.
  scratch.best[node] = std::min(candidate.score, criterion_->perfect_score(nodes_[node].view()));
}

CodeCutTask CountedGrower::cut_task(const Node& node) const {
  CodeCutTask task;
  task.n_classes = n_classes_;
  task.totals = node.sums.data();
  task.least = 1e-15 * node.stat[0] * unit;
  task.min_weight = options_.min_weight_leaf * unit;
  task.n_rows = node.n_rows;
  task.min_rows = static_cast<Row>(options_.min_samples_leaf);
  return task;
}

void CountedGrower::scan_numeric(const CountedColumn& column, const Node& node,
                                 const std::int64_t* sums, Scratch& scratch, Candidate& out) const {
  const std::size_t width = n_classes_;
  const std::size_t n_codes = column.n_codes() - (column.has_missing ? 1 : 0);
  const auto is_empty = [&](std::size_t code) {  // every row has a positive weight
    return std::all_of(sums + code * width, sums + (code + 1) * width,
                       [](std::int64_t sum) { return sum == 0; });
  };
  CodeCutTask task = cut_task(node);
  task.sums = sums;
  task.n_codes = n_codes;
  if (counts_rows()) task.counts = scratch.counts.data();
  const auto take = [&](const CodeCut& cut, std::size_t first, bool missing_left) {
    if (!(cut.score > out.score)) return;
    out.score = cut.score;
    out.left_code = static_cast<Code>(first + cut.code);
    std::size_t above = first + cut.code + 1;
    while (above < n_codes && is_empty(above)) ++above;
    out.above = static_cast<Code>(above);
    out.missing_left = missing_left;
    out.only_missing_right = above == n_codes;
  };
  take(best_code_cut(task, scratch.cuts), 0, false);
  if (!column.has_missing || is_empty(n_codes)) return;
  std::size_t first = 0;
  while (first < n_codes && is_empty(first)) ++first;
  task.sums += first * width;
  task.n_codes -= first;
  task.left = sums + n_codes * width;
  if (counts_rows()) {
    task.counts += first;
    task.n_left = scratch.counts[n_codes];
  }
  take(best_code_cut(task, scratch.cuts), first, true);
}

// Two classes: sorted by the fraction of the second class, the best prefix is the best subset.
void CountedGrower::scan_categorical(const CountedColumn& column, const Node& node,
                                     const std::int64_t* sums, Scratch& scratch,
                                     Candidate& out) const {
  std::vector<Code>& order = out.present;
  order.clear();
  scratch.keys.resize(column.n_codes());
  for (std::size_t code = 0; code < column.n_codes(); ++code) {
    const std::int64_t all = sums[2 * code] + sums[2 * code + 1];
    if (all == 0) continue;
    order.push_back(static_cast<Code>(code));
    scratch.keys[code] = static_cast<double>(sums[2 * code + 1]) / static_cast<double>(all);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](Code a, Code b) { return scratch.keys[a] < scratch.keys[b]; });
  scratch.ordered.clear();
  scratch.ordered_counts.clear();
  for (const Code code : order) {
    scratch.ordered.push_back(sums[2 * code]);
    scratch.ordered.push_back(sums[2 * code + 1]);
    if (counts_rows()) scratch.ordered_counts.push_back(scratch.counts[code]);
  }
  CodeCutTask task = cut_task(node);
  task.sums = scratch.ordered.data();
  task.n_codes = order.size();
  if (counts_rows()) task.counts = scratch.ordered_counts.data();
  const CodeCut cut = best_code_cut(task, scratch.cuts);
  if (!cut.found()) return;
  out.score = cut.score;
  out.left_codes.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(cut.code) + 1);
  std::sort(out.left_codes.begin(), out.left_codes.end());
  std::sort(order.begin(), order.end());
}

void CountedGrower::sum_left(const CountedColumn& column, const std::int64_t* sums,
                             Candidate& candidate) const {
  std::vector<std::int64_t>& out = candidate.left_sums;
  out.assign(n_classes_, 0);
  const auto add = [&](std::size_t code) {
    for (std::size_t k = 0; k < n_classes_; ++k) out[k] += sums[code * n_classes_ + k];
  };
  if (column.categorical) {
    for (const Code code : candidate.left_codes) add(code);
    return;
  }
  for (std::size_t code = 0; code <= candidate.left_code; ++code) add(code);
  if (candidate.missing_left) add(column.missing_code);
}

// Stores a node's best split and creates its children; returns false if no split is good enough.
bool CountedGrower::choose(std::size_t index) {
  const auto at =
      static_cast<std::size_t>(std::find(open_.begin(), open_.end(), index) - open_.begin());
  const double perfect = criterion_->perfect_score(nodes_[index].view());
  // The first of equally good columns wins; the node's path determines the first column.
  const std::size_t n = n_columns();
  const std::size_t start = common::mix(nodes_[index].key) % n;
  double best = -std::numeric_limits<double>::infinity();
  std::size_t f = n;
  for (std::size_t i = 0; i < n && best < perfect; ++i) {
    const std::size_t here = (start + i) % n;
    if (!(candidates_[at * n + here].score > best)) continue;
    best = candidates_[at * n + here].score;
    f = here;
  }
  if (f == n) return false;
  const Candidate& candidate = candidates_[at * n + f];
  Node left;
  Node right;
  left.sums = candidate.left_sums;
  right.sums = nodes_[index].sums;
  for (std::size_t k = 0; k < n_classes_; ++k) right.sums[k] -= left.sums[k];
  for (Node* child : {&left, &right}) {
    child->depth = nodes_[index].depth + 1;
    child->key = common::combine(nodes_[index].key, child == &left ? 1 : 2);
    complete(*child);
  }
  Node& node = nodes_[index];
  const double gain = node.stat[0] / total_weight_ *
                      (node.impurity - right.stat[0] / node.stat[0] * right.impurity -
                       left.stat[0] / node.stat[0] * left.impurity);
  if (!(gain + epsilon >= options_.min_impurity_decrease)) return false;
  const CountedColumn& column = counted_.columns[f];
  criterion::Split& split = node.split;
  split.feature = static_cast<std::int32_t>(f);
  split.categorical = column.categorical;
  if (column.categorical) {
    split.left_codes = candidate.left_codes;
    node.present = candidate.present;
  } else {
    split.left_code = candidate.left_code;
    split.missing_left = candidate.missing_left;
    split.only_missing_right = candidate.only_missing_right;
    split.below = column.row_of[candidate.left_code];
    if (!split.only_missing_right) split.above = column.row_of[candidate.above];
  }
  node.left = nodes_.size();
  node.right = nodes_.size() + 1;
  nodes_.push_back(std::move(left));
  nodes_.push_back(std::move(right));
  return true;
}

// -------------------------------------------------------------------------------------- rows

void CountedGrower::partition(const std::vector<std::size_t>& parents) {
  if (parents.empty()) return;
  const std::size_t n_blocks = nodes_[0].segments.size();
  for (const std::size_t parent : parents) {
    nodes_[nodes_[parent].left].segments.resize(n_blocks);
    nodes_[nodes_[parent].right].segments.resize(n_blocks);
  }
  const double work = 2.0 * static_cast<double>(rows_.size());
  parallel_for(n_blocks, threads_for(work), [&](std::size_t block, int thread) {
    std::vector<Row>& buffer = scratches_[static_cast<std::size_t>(thread)].rows;
    buffer.resize(block_rows);
    for (const std::size_t parent : parents) {
      const Node& node = nodes_[parent];
      const Segment whole = node.segments[block];
      const Row middle = partition_segment(node, whole, buffer.data());
      nodes_[node.left].segments[block] = {whole.begin, middle};
      nodes_[node.right].segments[block] = {middle, whole.end};
      for (Row i = whole.begin; i < whole.end; ++i) {
        node_of_[rows_[i]] = static_cast<std::uint8_t>(i < middle ? node.left : node.right);
      }
    }
  });
  // The larger child takes its parent's slot, the smaller child a free slot.
  std::vector<bool> taken(std::size_t{1} << max_levels);
  for (const std::size_t parent : parents) taken[nodes_[parent].slot] = true;
  for (const std::size_t parent : parents) {
    Node& node = nodes_[parent];
    for (const std::size_t child : {node.left, node.right}) {
      for (const Segment& segment : nodes_[child].segments) {
        nodes_[child].n_rows += segment.end - segment.begin;
      }
      nodes_[child].terminal = is_terminal(nodes_[child]);
    }
    const bool left_is_smaller = nodes_[node.left].n_rows < nodes_[node.right].n_rows;
    node.smaller = left_is_smaller ? node.left : node.right;
    const std::size_t larger = left_is_smaller ? node.right : node.left;
    nodes_[larger].slot = node.slot;
    const auto free = std::find(taken.begin(), taken.end(), false);
    nodes_[node.smaller].slot = static_cast<std::size_t>(free - taken.begin());
    *free = true;
    set_missing_direction(node);
  }
}

// Moves the rows that go left to the front; returns where the others begin.
Row CountedGrower::partition_segment(const Node& node, Segment segment, Row* buffer) {
  const criterion::Split& split = node.split;
  const CountedColumn& column = counted_.columns[static_cast<std::size_t>(split.feature)];
  const std::uint32_t* const cells = column.cells.data();
  const auto n_classes = static_cast<std::uint32_t>(n_classes_);
  Row* const rows = rows_.data() + segment.begin;
  const Row n = segment.end - segment.begin;
  Row n_left = 0;
  Row n_right = 0;
  const auto partition_by = [&](const auto& goes_left) {
    for (Row i = 0; i < n; ++i) {
      const Row row = rows[i];
      const Row side = goes_left(cells[row]) ? 1 : 0;
      rows[n_left] = row;
      buffer[n_right] = row;
      n_left += side;
      n_right += 1 - side;
    }
  };
  if (split.categorical) {
    partition_by([&](std::uint32_t cell) {
      return std::binary_search(split.left_codes.begin(), split.left_codes.end(), cell / n_classes);
    });
  } else {
    const std::uint32_t end = (split.left_code + 1) * n_classes;
    const std::uint32_t missing = column.has_missing && split.missing_left
                                      ? column.missing_code * n_classes
                                      : std::numeric_limits<std::uint32_t>::max();
    partition_by([=](std::uint32_t cell) { return cell < end || cell >= missing; });
  }
  std::copy(buffer, buffer + n_right, rows + n_left);
  return segment.begin + n_left;
}

// Without missing values in the node, later missing values follow the larger child.
void CountedGrower::set_missing_direction(Node& node) {
  criterion::Split& split = node.split;
  const CountedColumn& column = counted_.columns[static_cast<std::size_t>(split.feature)];
  const bool larger_left = nodes_[node.left].n_rows > nodes_[node.right].n_rows;
  bool has_missing = column.has_missing;
  if (has_missing && split.categorical) {
    has_missing = node.present.back() == column.missing_code;
    split.missing_left = has_missing && split.left_codes.back() == column.missing_code;
  } else if (has_missing) {
    const auto first = column.missing_code * static_cast<std::uint32_t>(n_classes_);
    has_missing = false;
    for (const Segment& segment : node.segments) {
      for (Row i = segment.begin; i < segment.end && !has_missing; ++i) {
        has_missing = column.cells[rows_[i]] >= first;
      }
    }
  }
  if (!has_missing) split.missing_left = larger_left;
}

void CountedGrower::reweigh(const std::vector<double>& factors, double least) {
  const std::size_t n_blocks = nodes_[0].segments.size();
  for (Scratch& scratch : scratches_) scratch.classes.assign(n_classes_, 0);
  const double work = 2.0 * static_cast<double>(rows_.size());
  parallel_for(n_blocks, threads_for(work), [&](std::size_t block, int thread) {
    std::int64_t* const classes = scratches_[static_cast<std::size_t>(thread)].classes.data();
    for (const Node& node : nodes_) {
      if (node.left != no_node) continue;
      const double* const by_class = factors.data() + node.in_tree * n_classes_;
      for (Row i = node.segments[block].begin; i < node.segments[block].end; ++i) {
        const Row row = rows_[i];
        const std::uint32_t label = targets_.labels[row];
        const double weight = std::max(weights_[row] * by_class[label], least);
        const std::int64_t units = to_units(weight);
        weights_[row] = weight;
        units_[row] = units;
        classes[label] += units;
      }
    }
    const Segment whole = nodes_[0].segments[block];  // restores the original order
    std::copy(counted_.rows.data() + whole.begin, counted_.rows.data() + whole.end,
              rows_.data() + whole.begin);
  });
  classes_.assign(n_classes_, 0);
  for (const Scratch& scratch : scratches_) {
    for (std::size_t k = 0; k < n_classes_; ++k) classes_[k] += scratch.classes[k];
  }
}

// -------------------------------------------------------------------------------------- tree

// Writes nodes in pre-order.
void CountedGrower::write(std::size_t index, common::NodeIndex parent, bool is_left) {
  Node& node = nodes_[index];
  const common::NodeIndex at = tree_.add_leaf(node.impurity, node.n_rows, node.stat[0]);
  node.in_tree = static_cast<std::size_t>(at);
  criterion_->value(node.stat.data(), tree_.value.data() + node.in_tree * n_classes_);
  tree_sums_.insert(tree_sums_.end(), node.stat.begin() + 1, node.stat.end());
  tree_.max_depth = std::max(tree_.max_depth, static_cast<std::int32_t>(node.depth));
  if (parent != no_child) {
    (is_left ? tree_.left : tree_.right)[static_cast<std::size_t>(parent)] = at;
  }
  if (node.left == no_node) return;
  write_split(node, node.in_tree);
  write(node.left, at, true);
  write(node.right, at, false);
}

void CountedGrower::write_split(const Node& node, std::size_t at) {
  const criterion::Split& split = node.split;
  const table::Column& column = table_.columns[static_cast<std::size_t>(split.feature)];
  tree_.feature[at] = split.feature;
  tree_.missing_left[at] = split.missing_left;
  if (!split.categorical) {
    tree_.threshold[at] = split.only_missing_right
                              ? std::numeric_limits<double>::infinity()
                              : midpoint(column.value(split.below), column.value(split.above));
    return;
  }
  tree_.threshold[at] = std::numeric_limits<double>::quiet_NaN();
  const bool larger_left = nodes_[node.left].n_rows > nodes_[node.right].n_rows;
  tree_.category_start[at] = static_cast<std::int64_t>(tree_.category_bits.size());
  const std::size_t n_words = words_for(column.n_categories);
  tree_.category_bits.resize(tree_.category_bits.size() + 2 * n_words);
  std::uint32_t* const seen = tree_.category_bits.data() + tree_.category_bits.size() - n_words;
  std::uint32_t* const goes_left = seen - n_words;
  const auto n_categories = static_cast<Code>(column.n_categories);  // the code of missing
  for (const Code code : node.present) {
    if (code < n_categories) mark_category(seen, code);
  }
  for (const Code code : split.left_codes) {
    if (code < n_categories) mark_category(goes_left, code);
  }
  if (!larger_left) return;
  std::size_t next = 0;  // categories absent from the node go left too
  for (Code code = 0; code < n_categories; ++code) {
    if (next < node.present.size() && node.present[next] == code) {
      ++next;
    } else {
      mark_category(goes_left, code);
    }
  }
}

}  // namespace spinney::tree
