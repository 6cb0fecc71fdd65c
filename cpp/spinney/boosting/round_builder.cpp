#include "spinney/boosting/round_builder.h"

#include <algorithm>
#include <cmath>

#include "spinney/boosting/exact_builder.h"
#include "spinney/boosting/tree_builder.h"
#include "spinney/boosting/vector_builder.h"
#include "spinney/common/check.h"
#include "spinney/common/fixed_point.h"
#include "spinney/common/parallel.h"

namespace spinney::boosting {

using common::parallel_for;
using common::worthwhile_threads;

void RoundBuilder::clear_tree() {
  tree_.clear();
  leaves_.clear();
}

std::vector<Sums> RoundBuilder::leaf_sums(const loss::Derivatives& derivatives,
                                          const Sums& largest) const {
  // Integer weights multiply rounded derivatives, like repeated rows; other weights unrounded ones.
  const auto for_rows = [&](const LeafRows& leaf, const auto& body) {
    for (std::size_t i = 0; i < leaf.end - leaf.begin; ++i) {
      const std::size_t row = leaf.rows == nullptr ? i : leaf.rows[i];
      const double weight = weights_.values == nullptr ? 1.0 : weights_.values[row];
      const std::int64_t times = weights_.repeats ? common::nearest(weight) : 1;
      const double factor = weights_.repeats ? 1.0 : weight;
      body(times, factor * static_cast<double>(derivatives.gradient[row]),
           factor * static_cast<double>(derivatives.hessian[row]));
    }
  };
  const double gradient_in_one = common::units_in_one(largest.gradient, workers_.n_rows);
  const double hessian_in_one = common::units_in_one(largest.hessian, workers_.n_rows);
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
  common::add_up(workers_.exchange, units.data(), units.size());
  std::vector<Sums> sums(leaves_.size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i] = {static_cast<double>(units[2 * i]) / gradient_in_one,
               static_cast<double>(units[2 * i + 1]) / hessian_in_one};
  }
  return sums;
}

void RoundBuilder::refine_leaves(const loss::Derivatives& derivatives) {
  const std::vector<Sums> sums = leaf_sums(derivatives, largest_);
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    tree_.value[static_cast<std::size_t>(leaves_[i].node)] =
        leaf_weight(sums[i], rules_.split, leaves_[i].bounds);
  }
}

void RoundBuilder::write_bin_split(std::size_t at, const table::BinnedColumn& column,
                                   const BinSplit& split) {
  tree_.feature[at] = static_cast<std::int32_t>(split.feature);
  tree_.missing_left[at] = split.missing_left ? 1 : 0;
  const double threshold = split.code < column.cuts.size()
                               ? column.cuts[split.code]
                               : std::numeric_limits<double>::infinity();
  if (column.source >= 0) {
    tree_.feature[at] = column.source;
    tree_.missing_left[at] = column.of_category.back() <= threshold ? 1 : 0;
    write_category_split(at, column.of_category.size() - 1, [&](std::size_t category) {
      return column.of_category[category] <= threshold;
    });
  } else if (split.categorical) {
    write_category_split(at, column.bin_of.size(), [&](std::size_t category) {
      return split.goes_left(column.bin_of[category], 256);
    });
  } else {
    tree_.threshold[at] = threshold;
  }
}

void RoundBuilder::follow_codes(const table::BinnedMatrix& matrix, const table::BinnedMatrix& like,
                                const std::vector<BinSplit>& splits, const common::Row* rows,
                                std::size_t n, int n_threads, common::NodeIndex* out) const {
  constexpr std::size_t block = 4096;
  const double work = 20.0 * static_cast<double>(n);
  parallel_for((n + block - 1) / block, worthwhile_threads(work, n_threads, true),
               [&](std::size_t block_index, int) {
                 const std::size_t end = std::min(n, (block_index + 1) * block);
                 for (std::size_t i = block_index * block; i < end; ++i) {
                   const std::size_t row = rows == nullptr ? i : rows[i];
                   std::size_t at = 0;
                   while (tree_.left[at] != forest::no_child) {
                     const BinSplit& split = splits[at];
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
  if (binned->only_by_row()) {
    return std::make_unique<TreeBuilder<RowsInPlace>>(*binned, rules, n_threads);
  }
  return std::make_unique<TreeBuilder<MovingRows>>(*binned, rules, n_threads);
}

}  // namespace spinney::boosting
