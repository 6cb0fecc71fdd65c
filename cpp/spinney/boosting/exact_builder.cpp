#include "spinney/boosting/exact_builder.h"

#include <algorithm>
#include <cmath>
#include <numeric>

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

Sums without(const Sums& a, const Sums& b) {
  return {a.gradient - b.gradient, a.hessian - b.hessian};
}

}  // namespace

ExactBuilder::ExactBuilder(const table::ExactMatrix& matrix, TreeRules rules, int n_threads)
    : RoundBuilder(std::move(rules)), matrix_(matrix), n_threads_(n_threads) {
  if (rules_.growth == Growth::oblivious) {
    throw common::InputError(
        "growth='oblivious' needs bins: expected max_bins up to 255, got None");
  }
  goes_left_.resize(matrix.n_rows());
}

// Repetitions are added one by one: sums of floats then have the bits of those of repeated rows.
void ExactBuilder::add_row(Row row, Part& to) const {
  const double weight = weights_.values == nullptr ? 1.0 : weights_.values[row];
  const double factor = weights_.repeats ? 1.0 : weight;
  const Sums one{factor * static_cast<double>(of_.gradient[row]),
                 factor * static_cast<double>(of_.hessian[row])};
  const std::int64_t times = weights_.repeats ? common::nearest(weight) : 1;
  for (std::int64_t i = 0; i < times; ++i) to.sums = add(to.sums, one);
  to.n_rows += count_of(row);
}

double ExactBuilder::count_of(Row row) const { return weights_.whole ? weights_.values[row] : 1.0; }

// Twice what a leaf takes off the objective.
double ExactBuilder::score(const Sums& sums, double l2, const Bounds& bounds) const {
  if (!(sums.hessian + l2 > 0)) return 0;
  const double l1 = rules_.split.l1_regularization;
  const double weight = leaf_weight(sums, l1, l2, bounds);
  return -(2 * sums.gradient * weight + 2 * l1 * std::abs(weight) +
           (sums.hessian + l2) * weight * weight);
}

void ExactBuilder::offer(const Node& node, const Part& left, std::int8_t sign, double l2,
                         Split& best, bool& better) const {
  better = false;
  const Sums right = without(node.total, left.sums);
  const auto fewest = static_cast<double>(rules_.split.min_samples_leaf);
  if (left.n_rows < fewest || node.n_rows - left.n_rows < fewest) return;
  // Sums of second derivatives that are rounding beside those of a heavy row say nothing about a
  // leaf.
  const double least = std::max(rules_.split.min_hessian_leaf, rounding_share * largest_.hessian);
  if (left.sums.hessian < least || right.hessian < least) return;
  const double whole = score(node.total, rules_.split.l2_regularization, node.bounds);
  const double parts = score(left.sums, l2, node.bounds) + score(right, l2, node.bounds);
  const double gain = 0.5 * (parts - whole) - rules_.split.min_split_gain;
  if (!(gain > std::max(best.gain, rounding_share * whole))) return;
  if (sign != 0) {
    const double a = leaf_weight(left.sums, rules_.split, node.bounds);
    const double b = leaf_weight(right, rules_.split, node.bounds);
    if (sign > 0 ? a > b : a < b) return;
  }
  best.gain = gain;
  best.left = left.sums;
  better = true;
}

ExactBuilder::Split ExactBuilder::search_numbers(const Node& node, std::uint32_t feature) const {
  const table::ExactColumn& column = matrix_.column(feature);
  const Row* const order = order_[feature].data() + node.begin;
  const std::size_t n = node.end - node.begin;
  const std::int8_t sign =
      rules_.split.monotonic_cst.empty() ? std::int8_t{0} : rules_.split.monotonic_cst[feature];
  std::size_t n_known = n;
  Part missing;
  while (n_known > 0 && std::isnan(column.values[order[n_known - 1]])) {
    add_row(order[--n_known], missing);
  }
  Split best;
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
      bool better = false;
      offer(node, left, sign, rules_.split.l2_regularization, best, better);
      if (!better) continue;
      // With all values on the left, missing ones are parted from them.
      best.threshold = last ? std::numeric_limits<double>::infinity()
                            : table::between(value, column.values[order[i + 1]]);
      best.missing_left = direction == 1;
    }
  }
  if (n_directions == 1) best.missing_left = 2 * best.left.hessian >= node.total.hessian;
  return best;
}

ExactBuilder::Split ExactBuilder::search_categories(const Node& node, std::uint32_t feature) const {
  const table::ExactColumn& column = matrix_.column(feature);
  const auto n_categories = static_cast<std::size_t>(column.n_categories);
  std::vector<Part> sums(n_categories + 1);  // the last is what is missing
  for (std::size_t i = node.begin; i < node.end; ++i) {
    const double value = column.values[rows_[i]];
    add_row(rows_[i], sums[std::isnan(value) ? n_categories : static_cast<std::size_t>(value)]);
  }
  const double doubt = rules_.split.category_smooth * node.total.hessian / node.n_rows;
  std::vector<std::size_t> order;
  for (std::size_t c = 0; c <= n_categories; ++c) {
    if (sums[c].n_rows > 0) order.push_back(c);
  }
  Split best;
  best.feature = feature;
  const std::size_t n = order.size();
  if (n < 2) return best;
  const auto ratio = [&](std::size_t c) {
    const double below = sums[c].sums.hessian + doubt;
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
    bool better = false;
    offer(node, left, 0, l2, best, better);
    if (better) cut = i;
  }
  if (cut == n) return best;
  // What the node does not know goes with the many.
  const bool many_left = 2 * best.left.hessian >= node.total.hessian;
  best.left_categories.assign(n_categories + 1, many_left);
  for (std::size_t i = 0; i < n; ++i) best.left_categories[order[i]] = i <= cut;
  best.missing_left = best.left_categories[n_categories];
  return best;
}

bool ExactBuilder::may_split(const Node& node) const {
  return node.depth < rules_.max_depth && node.end - node.begin >= 2;
}

void ExactBuilder::search(Node& node) {
  if (!may_split(node)) return;
  const std::vector<std::uint8_t> allowed =
      allowed_columns(matrix_.n_features(), node.depth, node.name, node.path);
  std::vector<Split> best(matrix_.n_features());
  const double work = 10.0 * static_cast<double>((node.end - node.begin) * matrix_.n_features());
  parallel_for(best.size(), worthwhile_threads(work, n_threads_, true), [&](std::size_t f, int) {
    if (!allowed.empty() && allowed[f] == 0) return;
    const auto feature = static_cast<std::uint32_t>(f);
    best[f] = matrix_.column(f).n_categories > 0 ? search_categories(node, feature)
                                                 : search_numbers(node, feature);
  });
  for (Split& split : best) {
    if (split.gain > node.split.gain) node.split = std::move(split);
  }
}

bool ExactBuilder::goes_left(const Split& split, double value) const {
  if (std::isnan(value)) return split.missing_left;
  if (split.left_categories.empty()) return value <= split.threshold;
  return split.left_categories[static_cast<std::size_t>(value)];
}

void ExactBuilder::part(std::size_t which) {
  Node parent = std::move(nodes_[which]);
  const Split& split = parent.split;
  const auto at = static_cast<std::size_t>(parent.index);
  const table::ExactColumn& column = matrix_.column(split.feature);
  tree_.feature[at] = static_cast<std::int32_t>(split.feature);
  tree_.missing_left[at] = split.missing_left ? 1 : 0;
  if (column.source >= 0) {
    tree_.feature[at] = column.source;
    tree_.missing_left[at] = column.of_category.back() <= split.threshold ? 1 : 0;
    write_categories(at, column.of_category.size() - 1, [&](std::size_t category) {
      return column.of_category[category] <= split.threshold;
    });
  } else if (split.left_categories.empty()) {
    tree_.threshold[at] = split.threshold;
  } else {
    write_categories(at, split.left_categories.size() - 1,
                     [&](std::size_t category) { return split.left_categories[category]; });
  }
  questions_[at] = split;
  for (std::size_t i = parent.begin; i < parent.end; ++i) {
    goes_left_[rows_[i]] = goes_left(split, column.values[rows_[i]]) ? 1 : 0;
  }
  const auto divide = [&](std::vector<Row>& rows) {
    const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(parent.begin);
    const auto end = rows.begin() + static_cast<std::ptrdiff_t>(parent.end);
    return std::stable_partition(begin, end, [&](Row row) { return goes_left_[row] != 0; });
  };
  const auto middle = static_cast<std::size_t>(divide(rows_) - rows_.begin());
  const double work = 5.0 * static_cast<double>((parent.end - parent.begin) * order_.size());
  parallel_for(order_.size(), worthwhile_threads(work, n_threads_, true), [&](std::size_t f, int) {
    if (!order_[f].empty()) divide(order_[f]);
  });
  Node left;
  Node right;
  left.begin = parent.begin;
  left.end = right.begin = middle;
  right.end = parent.end;
  left.depth = right.depth = parent.depth + 1;
  left.total = split.left;
  right.total = without(parent.total, split.left);
  left.bounds = right.bounds = parent.bounds;
  if (!rules_.split.monotonic_cst.empty()) {
    tighten(rules_.split.monotonic_cst[split.feature], left.total, right.total, left.bounds,
            right.bounds);
  }
  left.name = name_of_child(parent.name, true);
  right.name = name_of_child(parent.name, false);
  left.path = parent.path;
  if (!rules_.interaction_cst.empty()) left.path.push_back(split.feature);
  right.path = left.path;
  for (Node* const child : {&left, &right}) {
    for (std::size_t i = child->begin; i < child->end; ++i) {
      child->n_rows += count_of(rows_[i]);
    }
    child->index = tree_.add_leaf(0, 0, 0);
    describe(static_cast<std::size_t>(child->index), child->total, child->bounds,
             child->end - child->begin);
  }
  questions_.resize(tree_.size());
  tree_.left[at] = left.index;
  tree_.right[at] = right.index;
  tree_.max_depth = std::max(tree_.max_depth, static_cast<std::int32_t>(left.depth));
  if (nodes_.size() + 1 < rules_.max_leaf_nodes) {
    search(left);
    search(right);
  }
  nodes_[which] = std::move(left);
  nodes_.push_back(std::move(right));
}

void ExactBuilder::grow(std::uint64_t number, const Row* rows, std::size_t n_rows,
                        const loss::Derivatives& of, const RowWeights& weights, bool,
                        common::Watch& watch) {
  number_ = number;
  of_ = of;
  weights_ = weights;
  tree_.clear();
  nodes_.clear();
  leaves_.clear();
  questions_.clear();
  rows_.resize(n_rows);
  if (rows == nullptr) {
    std::iota(rows_.begin(), rows_.end(), Row{0});
  } else {
    std::copy(rows, rows + n_rows, rows_.begin());
  }
  largest_ = {};
  for (const Row row : rows_) {
    double weight = weights.values == nullptr ? 1.0 : weights.values[row];
    if (weights.repeats) weight = std::min(weight, 1.0);  // of a single row
    largest_.gradient =
        std::max(largest_.gradient, weight * std::abs(static_cast<double>(of.gradient[row])));
    largest_.hessian = std::max(largest_.hessian, weight * static_cast<double>(of.hessian[row]));
  }
  std::fill(goes_left_.begin(), goes_left_.end(), std::uint8_t{0});
  for (const Row row : rows_) goes_left_[row] = 1;  // drawn
  order_.resize(matrix_.n_features());
  for (std::size_t f = 0; f < order_.size(); ++f) {
    const std::vector<Row>& all = matrix_.column(f).order;
    if (all.empty()) continue;
    order_[f].clear();
    std::copy_if(all.begin(), all.end(), std::back_inserter(order_[f]),
                 [&](Row row) { return goes_left_[row] != 0; });
  }
  draw_tree_columns(matrix_.n_features());
  Node root;
  root.end = n_rows;
  Part all;
  for (const Row row : rows_) add_row(row, all);
  root.total = all.sums;
  root.n_rows = all.n_rows;
  root.index = tree_.add_leaf(0, 0, 0);
  describe(0, root.total, root.bounds, n_rows);
  questions_.resize(1);
  if (rules_.max_leaf_nodes > 1) search(root);
  nodes_.push_back(std::move(root));
  while (nodes_.size() < rules_.max_leaf_nodes) {
    const std::size_t next = next_leaf(nodes_);
    if (next == nodes_.size()) break;
    watch.poll((nodes_[next].end - nodes_[next].begin) * matrix_.n_features() * 10);
    part(next);
  }
  for (const Node& node : nodes_) {
    leaves_.push_back({node.index, node.begin, node.end, rows_.data() + node.begin, node.bounds});
  }
}

void ExactBuilder::find_leaves(const table::RowMatrix& other, const Row* rows, std::size_t n,
                               common::NodeIndex* out) const {
  const auto& matrix = static_cast<const table::ExactMatrix&>(other);
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t row = rows == nullptr ? i : rows[i];
    std::size_t at = 0;
    while (tree_.left[at] != tree::no_child) {
      const Split& split = questions_[at];
      const bool left = goes_left(split, matrix.column(split.feature).values[row]);
      at = static_cast<std::size_t>(left ? tree_.left[at] : tree_.right[at]);
    }
    out[i] = static_cast<common::NodeIndex>(at);
  }
}

}  // namespace spinney::boosting
