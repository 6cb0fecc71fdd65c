#include "spinney/boosting/round_builder.h"

#include <algorithm>
#include <cmath>

#include "spinney/boosting/exact_builder.h"
#include "spinney/boosting/tree_builder.h"
#include "spinney/boosting/vector_builder.h"
#include "spinney/common/check.h"
#include "spinney/common/fixed_point.h"
#include "spinney/common/parallel.h"
#include "spinney/common/random.h"

namespace spinney::boosting {

using common::parallel_for;
using common::worthwhile_threads;

namespace {

bool draws(double share) { return share < 1; }

}  // namespace

std::vector<Sums> RoundBuilder::leaf_sums(const loss::Derivatives& of, const Sums& largest) const {
  // Repetitions multiply what is rounded, other weights what is not.
  const auto for_rows = [&](const LeafRows& leaf, const auto& body) {
    for (std::size_t i = 0; i < leaf.end - leaf.begin; ++i) {
      const std::size_t row = leaf.rows == nullptr ? i : leaf.rows[i];
      const double weight = weights_.values == nullptr ? 1.0 : weights_.values[row];
      const std::int64_t times = weights_.repeats ? common::nearest(weight) : 1;
      const double factor = weights_.repeats ? 1.0 : weight;
      body(times, factor * static_cast<double>(of.gradient[row]),
           factor * static_cast<double>(of.hessian[row]));
    }
  };
  const double gradient_in_one = common::units_in_one(largest.gradient, company_.n_rows);
  const double hessian_in_one = common::units_in_one(largest.hessian, company_.n_rows);
  std::vector<std::int64_t> units(2 * leaves_.size());
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    std::int64_t gradient = 0;
    std::int64_t hessian = 0;
    for_rows(leaves_[i], [&](std::int64_t times, double g, double h) {
      gradient += times * common::nearest(g * gradient_in_one);
      hessian += times * common::nearest(h * hessian_in_one);
    });
    units[2 * i] = gradient;
    units[2 * i + 1] = hessian;
  }
  common::add_up(company_.exchange, units.data(), units.size());
  std::vector<Sums> sums(leaves_.size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i] = {static_cast<double>(units[2 * i]) / gradient_in_one,
               static_cast<double>(units[2 * i + 1]) / hessian_in_one};
  }
  return sums;
}

void RoundBuilder::refine_leaves(const loss::Derivatives& of) {
  const std::vector<Sums> sums = leaf_sums(of, largest_);
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    tree_.value[static_cast<std::size_t>(leaves_[i].node)] =
        leaf_weight(sums[i], rules_.split, leaves_[i].bounds);
  }
}

void RoundBuilder::write_question(std::size_t at, const table::BinnedColumn& column,
                                  const BinSplit& split) {
  tree_.feature[at] = static_cast<std::int32_t>(split.feature);
  tree_.missing_left[at] = split.missing_left ? 1 : 0;
  const double threshold = split.code < column.cuts.size()
                               ? column.cuts[split.code]
                               : std::numeric_limits<double>::infinity();
  if (column.source >= 0) {
    tree_.feature[at] = column.source;
    tree_.missing_left[at] = column.of_category.back() <= threshold ? 1 : 0;
    write_categories(at, column.of_category.size() - 1, [&](std::size_t category) {
      return column.of_category[category] <= threshold;
    });
  } else if (split.categorical) {
    write_categories(at, column.bin_of.size(), [&](std::size_t category) {
      return split.goes_left(column.bin_of[category], 256);
    });
  } else {
    tree_.threshold[at] = threshold;
  }
}

void RoundBuilder::follow_codes(const table::BinnedMatrix& matrix, const table::BinnedMatrix& like,
                                const std::vector<BinSplit>& questions, const common::Row* rows,
                                std::size_t n, int n_threads, common::NodeIndex* out) const {
  constexpr std::size_t block = 4096;
  const double work = 20.0 * static_cast<double>(n);
  parallel_for((n + block - 1) / block, worthwhile_threads(work, n_threads, true),
               [&](std::size_t piece, int) {
                 const std::size_t end = std::min(n, (piece + 1) * block);
                 for (std::size_t i = piece * block; i < end; ++i) {
                   const std::size_t row = rows == nullptr ? i : rows[i];
                   std::size_t at = 0;
                   while (tree_.left[at] != tree::no_child) {
                     const BinSplit& split = questions[at];
                     const bool left = split.goes_left(matrix.column_codes(split.feature)[row],
                                                       like.column(split.feature).missing_code());
                     at = static_cast<std::size_t>(left ? tree_.left[at] : tree_.right[at]);
                   }
                   out[i] = static_cast<common::NodeIndex>(at);
                 }
               });
}

void RoundBuilder::describe(std::size_t at, const Sums& sums, const Bounds& bounds,
                            std::size_t n_rows) {
  const double weight = leaf_weight(sums, rules_.split, bounds);
  tree_.value[at] = weight;
  tree_.weight[at] = sums.hessian;
  tree_.n_rows[at] = static_cast<std::int64_t>(n_rows);
  const double gain = -(sums.gradient * weight +
                        0.5 * (sums.hessian + rules_.split.l2_regularization) * weight * weight);
  tree_.impurity[at] = sums.hessian > 0 ? -gain / sums.hessian : 0.0;
}

void RoundBuilder::tighten(std::int8_t sign, const Sums& left, const Sums& right,
                           Bounds& left_bounds, Bounds& right_bounds) const {
  const double a = leaf_weight(left, rules_.split, left_bounds);
  const double b = leaf_weight(right, rules_.split, right_bounds);
  const double middle = 0.5 * (a + b);
  if (sign > 0) {
    left_bounds.high = right_bounds.low = middle;
  } else if (sign < 0) {
    left_bounds.low = right_bounds.high = middle;
  }
}

// Keeps a share of the columns that are marked, at least one; drawn without replacement.
void RoundBuilder::draw(std::vector<std::uint8_t>& columns, double share,
                        std::uint64_t purpose_index) const {
  if (!draws(share)) return;
  std::vector<std::uint32_t> marked;
  for (std::uint32_t f = 0; f < columns.size(); ++f) {
    if (columns[f] != 0) marked.push_back(f);
  }
  const auto n = static_cast<std::size_t>(
      std::max(1.0, std::round(share * static_cast<double>(marked.size()))));
  common::Stream stream(common::combine(rules_.seed, number_), common::Purpose::features,
                        purpose_index);
  for (std::size_t i = 0; i + 1 < marked.size() && i < n; ++i) {
    std::swap(marked[i], marked[i + stream.below(marked.size() - i)]);
  }
  std::fill(columns.begin(), columns.end(), std::uint8_t{0});
  for (std::size_t i = 0; i < std::min(n, marked.size()); ++i) columns[marked[i]] = 1;
}

void RoundBuilder::draw_tree_columns(std::size_t n_features) {
  tree_columns_.assign(n_features, 1);
  draw(tree_columns_, rules_.max_features_tree, 0);
}

std::vector<std::uint8_t> RoundBuilder::allowed_columns(
    std::size_t n_features, std::size_t depth, std::uint64_t name,
    const std::vector<std::uint32_t>& path) const {
  if (rules_.interaction_cst.empty() && !draws(rules_.max_features_tree) &&
      !draws(rules_.max_features_level) && !draws(rules_.max_features)) {
    return {};
  }
  std::vector<std::uint8_t> columns = tree_columns_;
  if (!rules_.interaction_cst.empty()) {
    // Columns of the sets that hold all columns asked about so far.
    std::vector<std::uint8_t> together(n_features);
    for (const std::vector<std::uint32_t>& set : rules_.interaction_cst) {
      const bool holds = std::all_of(path.begin(), path.end(), [&](std::uint32_t f) {
        return std::find(set.begin(), set.end(), f) != set.end();
      });
      if (!holds) continue;
      for (const std::uint32_t f : set) together[f] = 1;
    }
    for (std::size_t f = 0; f < together.size(); ++f) columns[f] &= together[f];
  }
  // Streams of levels and nodes do not meet that of the tree, 0.
  draw(columns, rules_.max_features_level, 1 + depth);
  draw(columns, rules_.max_features, (std::uint64_t{1} << 63) | name);
  return columns;
}

std::unique_ptr<RoundBuilder> make_builder(const table::RowMatrix& matrix, std::size_t n_outputs,
                                           const TreeRules& rules, int n_threads) {
  const auto* const binned = dynamic_cast<const table::BinnedMatrix*>(&matrix);
  if (binned == nullptr) {
    if (n_outputs > 1) {
      throw common::InputError("max_bins=None: expected one output, got several");
    }
    const auto& exact = dynamic_cast<const table::ExactMatrix&>(matrix);
    check_columns(rules, exact.n_features());
    return std::make_unique<ExactBuilder>(exact, rules, n_threads);
  }
  check_columns(rules, binned->n_features());
  if (n_outputs > 1) return std::make_unique<VectorBuilder>(*binned, n_outputs, rules, n_threads);
  return std::make_unique<TreeBuilder>(*binned, rules, n_threads);
}

}  // namespace spinney::boosting
