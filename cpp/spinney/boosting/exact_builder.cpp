#include "spinney/boosting/exact_builder.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "spinney/boosting/growth_order.h"
#include "spinney/boosting/lookahead_frontier.h"
#include "spinney/common/check.h"
#include "spinney/common/fixed_point.h"
#include "spinney/common/parallel.h"
#include "spinney/table/cut_search.h"

namespace spinney::boosting {

using common::parallel_for;
using common::Row;
using common::worthwhile_threads;

namespace {

Sums add(const Sums& a, const Sums& b) { return {a.gradient + b.gradient, a.hessian + b.hessian}; }

Sums subtract(const Sums& a, const Sums& b) {
  return {a.gradient - b.gradient, a.hessian - b.hessian};
}

}  // namespace

bool ExactSplit::goes_left(double value) const {
  if (std::isnan(value)) return missing_left;
  if (left_categories.empty()) return value <= threshold;
  return left_categories[static_cast<std::size_t>(value)];
}

SortedRows::SortedRows(const table::ExactMatrix& matrix, int n_threads)
    : matrix_(matrix),
      n_threads_(n_threads),
      order_(matrix.n_features()),
      flags_(matrix.n_rows()) {}

void SortedRows::start(const TreeInput& input) {
  rows_.resize(input.n_rows);
  if (input.rows == nullptr) {
    std::iota(rows_.begin(), rows_.end(), Row{0});
  } else {
    std::copy(input.rows, input.rows + input.n_rows, rows_.begin());
  }
  std::fill(flags_.begin(), flags_.end(), std::uint8_t{0});
  for (const Row row : rows_) flags_[row] = 1;  // a training row of this tree
  for (std::size_t f = 0; f < order_.size(); ++f) {
    const std::vector<Row>& all = matrix_.column(f).order;
    if (all.empty()) continue;
    order_[f].clear();
    std::copy_if(all.begin(), all.end(), std::back_inserter(order_[f]),
                 [&](Row row) { return flags_[row] != 0; });
  }
}

void SortedRows::partition(ExactNode& parent) {
  const std::vector<double>& values = matrix_.column(parent.split.feature).values;
  for (std::size_t i = parent.begin; i < parent.end; ++i) {
    flags_[rows_[i]] = parent.split.goes_left(values[rows_[i]]) ? 1 : 0;
  }
  const auto partition_list = [&](std::vector<Row>& rows) {
    const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(parent.begin);
    const auto end = rows.begin() + static_cast<std::ptrdiff_t>(parent.end);
    return std::stable_partition(begin, end, [&](Row row) { return flags_[row] != 0; });
  };
  const auto middle = static_cast<std::size_t>(partition_list(rows_) - rows_.begin());
  const double work = 5.0 * static_cast<double>(parent.n_rows() * order_.size());
  parallel_for(order_.size(), worthwhile_threads(work, n_threads_, true), [&](std::size_t f, int) {
    if (!order_[f].empty()) partition_list(order_[f]);
  });
  parent.left->begin = parent.begin;
  parent.left->end = parent.right->begin = middle;
  parent.right->end = parent.end;
}

ExactSearch::ExactSearch(const table::ExactMatrix& matrix, const TreeRules& rules,
                         const SortedRows& rows, int n_threads)
    : matrix_(matrix),
      rules_(rules),
      rows_(rows),
      n_threads_(n_threads),
      columns_(rules, matrix.n_features()) {}

void ExactSearch::start_tree(const TreeInput& input) {
  derivatives_ = input.derivatives;
  weights_ = input.weights;
  columns_.start_tree(input.number);
}

void ExactSearch::start(ExactNode& root) {
  largest_ = {};
  Part all;
  const Row* const rows = rows_.rows_of(root);
  for (std::size_t i = 0; i < root.n_rows(); ++i) {
    const Row row = rows[i];
    double weight = weights_.values == nullptr ? 1.0 : weights_.values[row];
    if (weights_.repeats) weight = std::min(weight, 1.0);  // of a single row
    const auto gradient = std::abs(static_cast<double>(derivatives_.gradient[row]));
    const auto hessian = static_cast<double>(derivatives_.hessian[row]);
    largest_.gradient = std::max(largest_.gradient, weight * gradient);
    largest_.hessian = std::max(largest_.hessian, weight * hessian);
    add_row(row, all);
  }
  root.total = all.sums;
  root.n_counted = all.n_rows;
  if (rules_.max_leaf_nodes > 1) search(root);
}

void ExactSearch::inherit(ExactNode& parent) {
  ExactNode& left = *parent.left;
  ExactNode& right = *parent.right;
  left.total = parent.split.left;
  right.total = subtract(parent.total, parent.split.left);
  left.bounds = right.bounds = parent.bounds;
  if (!rules_.split.monotonic_cst.empty()) {
    tighten_bounds(rules_.split.monotonic_cst[parent.split.feature], left.total, right.total,
                   rules_.split, left.bounds, right.bounds);
  }
  for (ExactNode* const child : {&left, &right}) {
    const Row* const rows = rows_.rows_of(*child);
    for (std::size_t i = 0; i < child->n_rows(); ++i) child->n_counted += count_of(rows[i]);
  }
}

void ExactSearch::search_children(ExactNode& parent) {
  search(*parent.left);
  search(*parent.right);
}

void ExactSearch::search(ExactNode& node) const {
  if (node.depth >= rules_.max_depth || node.n_rows() < 2) return;
  const std::vector<std::uint8_t> allowed = columns_.allowed(node.depth, node.name, node.path);
  std::vector<ExactSplit> best(matrix_.n_features());
  const double work = 10.0 * static_cast<double>(node.n_rows() * matrix_.n_features());
  parallel_for(best.size(), worthwhile_threads(work, n_threads_, true), [&](std::size_t f, int) {
    if (!allowed.empty() && allowed[f] == 0) return;
    const auto feature = static_cast<std::uint32_t>(f);
    best[f] = matrix_.column(f).n_categories > 0 ? search_categories(node, feature)
                                                 : search_numbers(node, feature);
  });
  for (ExactSplit& split : best) {
    if (split.gain > node.split.gain) node.split = std::move(split);
  }
}

// Adds a row once per unit of its integer weight: floating-point sums then have the bits of
// repeated rows.
void ExactSearch::add_row(Row row, Part& to) const {
  const double weight = weights_.values == nullptr ? 1.0 : weights_.values[row];
  const double factor = weights_.repeats ? 1.0 : weight;
  const Sums one{factor * static_cast<double>(derivatives_.gradient[row]),
                 factor * static_cast<double>(derivatives_.hessian[row])};
  const std::int64_t times = weights_.repeats ? common::nearest(weight) : 1;
  for (std::int64_t i = 0; i < times; ++i) to.sums = add(to.sums, one);
  to.n_rows += count_of(row);
}

double ExactSearch::count_of(Row row) const { return weights_.whole ? weights_.values[row] : 1.0; }

// Twice the decrease of the objective by a leaf.
double ExactSearch::score(const Sums& sums, double l2, const Bounds& bounds) const {
  if (!(sums.hessian + l2 > 0)) return 0;
  const double l1 = rules_.split.l1_regularization;
  const double weight = leaf_weight(sums, l1, l2, bounds);
  return -(2 * sums.gradient * weight + 2 * l1 * std::abs(weight) +
           (sums.hessian + l2) * weight * weight);
}

// Replaces the best split by the one with this left side if that gains more; returns whether it
// does.
bool ExactSearch::offer(const ExactNode& node, const Part& left, std::int8_t sign, double l2,
                        ExactSplit& best) const {
  const Sums right = subtract(node.total, left.sums);
  const auto fewest = static_cast<double>(rules_.split.min_samples_leaf);
  if (left.n_rows < fewest || node.n_counted - left.n_rows < fewest) return false;
  // Smaller sums of second derivatives are rounding errors of the largest ones.
  const double least = std::max(rules_.split.min_hessian_leaf, rounding_share * largest_.hessian);
  if (left.sums.hessian < least || right.hessian < least) return false;
  const double parent = score(node.total, rules_.split.l2_regularization, node.bounds);
  const double parts = score(left.sums, l2, node.bounds) + score(right, l2, node.bounds);
  const double gain = 0.5 * (parts - parent) - rules_.split.min_split_gain;
  if (!(gain > std::max(best.gain, rounding_share * parent))) return false;
  if (sign != 0) {
    const double a = leaf_weight(left.sums, rules_.split, node.bounds);
    const double b = leaf_weight(right, rules_.split, node.bounds);
    if (sign > 0 ? a > b : a < b) return false;
  }
  best.gain = gain;
  best.left = left.sums;
  return true;
}

ExactSplit ExactSearch::search_numbers(const ExactNode& node, std::uint32_t feature) const {
  const table::ExactColumn& column = matrix_.column(feature);
  const Row* const order = rows_.ordered_rows(node, feature);
  const std::size_t n = node.n_rows();
  const std::int8_t sign =
      rules_.split.monotonic_cst.empty() ? std::int8_t{0} : rules_.split.monotonic_cst[feature];
  std::size_t n_known = n;
  Part missing;
  while (n_known > 0 && std::isnan(column.values[order[n_known - 1]])) {
    add_row(order[--n_known], missing);
  }
  ExactSplit best;
  best.feature = feature;
  const int n_directions = n_known < n ? 2 : 1;
  for (int direction = 0; direction < n_directions; ++direction) {
    Part left = direction == 1 ? missing : Part{};
    for (std::size_t i = 0; i < n_known; ++i) {
      add_row(order[i], left);
      const double value = column.values[order[i]];
      const bool last = i + 1 == n_known;
      if (last ? direction == 1 || n_directions == 1 : column.values[order[i + 1]] == value) {
        continue;
      }
      if (!offer(node, left, sign, rules_.split.l2_regularization, best)) continue;
      // The last cut separates missing values from all others.
      best.threshold = last ? std::numeric_limits<double>::infinity()
                            : table::between(value, column.values[order[i + 1]]);
      best.missing_left = direction == 1;
    }
  }
  if (n_directions == 1) best.missing_left = 2 * best.left.hessian >= node.total.hessian;
  return best;
}

ExactSplit ExactSearch::search_categories(const ExactNode& node, std::uint32_t feature) const {
  const table::ExactColumn& column = matrix_.column(feature);
  const auto n_categories = static_cast<std::size_t>(column.n_categories);
  std::vector<Part> sums(n_categories + 1);  // the last one: missing
  const Row* const rows = rows_.rows_of(node);
  for (std::size_t i = 0; i < node.n_rows(); ++i) {
    const double value = column.values[rows[i]];
    add_row(rows[i], sums[std::isnan(value) ? n_categories : static_cast<std::size_t>(value)]);
  }
  const double smooth = rules_.split.category_smooth * node.total.hessian / node.n_counted;
  std::vector<std::size_t> order;
  for (std::size_t c = 0; c <= n_categories; ++c) {
    if (sums[c].n_rows > 0) order.push_back(c);
  }
  ExactSplit best;
  best.feature = feature;
  const std::size_t n = order.size();
  if (n < 2) return best;
  const auto ratio = [&](std::size_t c) {
    const double below = sums[c].sums.hessian + smooth;
    return below > 0 ? sums[c].sums.gradient / below : 0.0;
  };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return ratio(a) < ratio(b) || (ratio(a) == ratio(b) && a < b);
  });
  const double l2 = n == 2 ? rules_.split.l2_regularization
                           : rules_.split.l2_regularization + rules_.split.category_l2;
  Part left;
  std::size_t cut = n;
  for (std::size_t i = 0; i + 1 < n; ++i) {
    left.sums = add(left.sums, sums[order[i]].sums);
    left.n_rows += sums[order[i]].n_rows;
    if (std::min(i + 1, n - i - 1) > rules_.split.max_category_group) continue;
    if (offer(node, left, 0, l2, best)) cut = i;
  }
  if (cut == n) return best;
  // Values that do not occur in this node follow the majority.
  const bool majority_left = 2 * best.left.hessian >= node.total.hessian;
  best.left_categories.assign(n_categories + 1, majority_left);
  for (std::size_t i = 0; i < n; ++i) best.left_categories[order[i]] = i <= cut;
  best.missing_left = best.left_categories[n_categories];
  return best;
}

ExactBuilder::ExactBuilder(const table::ExactMatrix& matrix, TreeRules rules, int n_threads)
    : RoundBuilder(std::move(rules)),
      matrix_(matrix),
      rows_(matrix, n_threads),
      search_(matrix, rules_, rows_, n_threads) {
  if (rules_.growth == Growth::oblivious) {
    throw common::InputError(
        "growth='oblivious' needs bins: expected max_bins up to 255, got None");
  }
}

void ExactBuilder::grow(const TreeInput& input, common::Watch& watch) {
  clear_tree();
  splits_.clear();
  weights_ = input.weights;
  rows_.start(input);
  search_.start_tree(input);
  using Tree = GrowingTree<ExactNode, ExactBuilder>;
  Tree tree(*this, rules_.max_leaf_nodes, !rules_.interaction_cst.empty());
  ExactNode& root = tree.create_root(input.n_rows);
  LocalExpander<ExactNode, SortedRows, ExactSearch> expander(rows_, search_);
  with_growth_order(rules_.growth, [&]<class Order>(Order) {
    LookaheadFrontier<ExactNode, Tree, Order> frontier(tree);
    grow_tree(root, frontier, expander, 1, watch);
  });
  largest_ = search_.largest();
  for (const ExactNode& node : tree.nodes()) {
    if (!node.is_leaf) continue;
    leaves_.push_back({node.index, node.begin, node.end, rows_.rows_of(node), node.bounds});
  }
}

void ExactBuilder::add_leaf(ExactNode& node) {
  node.index = tree_.add_leaf(0, 0, 0);
  describe(static_cast<std::size_t>(node.index), node.total, node.bounds, node.n_rows());
  splits_.resize(tree_.size());
}

void ExactBuilder::write_split(const ExactNode& node) {
  const ExactSplit& split = node.split;
  const auto at = static_cast<std::size_t>(node.index);
  const table::ExactColumn& column = matrix_.column(split.feature);
  tree_.feature[at] = static_cast<std::int32_t>(split.feature);
  tree_.missing_left[at] = split.missing_left ? 1 : 0;
  if (column.source >= 0) {
    tree_.feature[at] = column.source;
    tree_.missing_left[at] = column.of_category.back() <= split.threshold ? 1 : 0;
    write_category_split(at, column.of_category.size() - 1, [&](std::size_t category) {
      return column.of_category[category] <= split.threshold;
    });
  } else if (split.left_categories.empty()) {
    tree_.threshold[at] = split.threshold;
  } else {
    write_category_split(at, split.left_categories.size() - 1,
                         [&](std::size_t category) { return split.left_categories[category]; });
  }
  splits_[at] = split;
  link_children(node);
}

void ExactBuilder::find_leaves(const table::RowMatrix& matrix, const Row* rows, std::size_t n,
                               common::NodeIndex* out) const {
  const auto& exact = static_cast<const table::ExactMatrix&>(matrix);
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t row = rows == nullptr ? i : rows[i];
    std::size_t at = 0;
    while (tree_.left[at] != forest::no_child) {
      const ExactSplit& split = splits_[at];
      const bool left = split.goes_left(exact.column(split.feature).values[row]);
      at = static_cast<std::size_t>(left ? tree_.left[at] : tree_.right[at]);
    }
    out[i] = static_cast<common::NodeIndex>(at);
  }
}

}  // namespace spinney::boosting
