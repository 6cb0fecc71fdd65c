#include "spinney/boosting/common_split.h"

#include <algorithm>
#include <array>

#include "spinney/common/dispatch.h"
#include "spinney/common/parallel.h"

namespace spinney::boosting {

using common::parallel_for;
using common::worthwhile_threads;

namespace {

constexpr std::size_t most_codes = 256;
using CodeSums = std::array<PackedSum, most_codes>;

// Sums of a node per code of a column, bundled or not.
const PackedSum* sums_of(const table::BinnedMatrix& matrix, std::uint32_t feature,
                         const NodeToSplit& node, CodeSums& own) {
  const table::BinnedColumn& column = matrix.column(feature);
  if (node.histogram == nullptr) {
    std::fill_n(own.begin(), column.n_codes(), PackedSum{0});
    const table::BinCodes codes = matrix.column_codes(feature);
    for (std::size_t i = 0; i < node.n_rows; ++i) {
      const std::size_t row = node.rows == nullptr ? i : node.rows[i];
      own[codes[row]] += node.sums.packed[node.sums.by_row ? row : i];
    }
    return own.data();
  }
  const PackedSum* at = node.histogram + column.start;
  if (!column.bundled) return at;
  PackedSum rest = node.total;
  for (std::uint32_t code = 0; code < column.n_codes(); ++code) {
    if (code == column.common_code) continue;
    own[code] = *at++;
    rest -= own[code];
  }
  own[column.common_code] = rest;
  return own.data();
}

struct GainTask {
  const PackedSum* prefix;
  std::size_t n;
  PackedSum total;
  PackedScale scale;
  double l2;
  double min_units;
  double parent;  // score of the node without a split
};

// gains[i] += twice the gain of the node if prefix[i] is the sum of its left side.
SPINNEY_INLINE void add_gains(const GainTask& task, double* gains) {
  const auto total_gradient = static_cast<double>(gradient_units(task.total));
  const auto total_hessian = static_cast<double>(hessian_units(task.total));
  for (std::size_t i = 0; i < task.n; ++i) {
    // AVX2 converts vectors of 32-bit integers to doubles, but not of 64-bit ones.
    const auto sum = static_cast<std::uint64_t>(task.prefix[i]);
    const auto low = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum) ^ 0x80000000U);
    const double hessian = static_cast<double>(low) + 2147483648.0;
    const auto gradient = static_cast<double>(static_cast<std::int32_t>(sum >> 32));
    const double other_hessian = total_hessian - hessian;
    const double left = gradient * task.scale.gradient;
    const double right = (total_gradient - gradient) * task.scale.gradient;
    const double below_left = hessian * task.scale.hessian + task.l2;
    const double below_right = other_hessian * task.scale.hessian + task.l2;
    const double score =
        (left * left * below_right + right * right * below_left) / (below_left * below_right);
    const double less = hessian < other_hessian ? hessian : other_hessian;
    gains[i] += less >= task.min_units ? score - task.parent : 0.0;
  }
}

double plain_score(const Sums& sums, double l2) {
  const double below = sums.hessian + l2;
  return below > 0 ? sums.gradient * sums.gradient / below : 0.0;
}

class CommonSearch {
 public:
  CommonSearch(const table::BinnedMatrix& matrix, std::span<const NodeToSplit> nodes,
               const NodeToSplit* counts, const SplitRules& rules)
      : matrix_(matrix), nodes_(nodes), counts_(counts), rules_(rules) {
    for (const NodeToSplit& node : nodes) {
      rounding_ +=
          rounding_share * plain_score(unpack(node.total, node.scale), rules.l2_regularization);
    }
  }

  BinSplit search(std::uint32_t feature) const {
    const table::BinnedColumn& column = matrix_.column(feature);
    BinSplit best;
    best.gain = 0;
    best.feature = feature;
    if (column.categorical && counts_ != nullptr) {
      for (std::size_t k = 0; k < nodes_.size(); ++k) {
        search_categories(feature, nodes_.subspan(k, 1), best);
      }
    } else if (column.categorical) {
      search_categories(feature, nodes_, best);
    } else {
      search_numbers(feature, best);
    }
    return best;
  }

 private:
  // No bounds and no L1 penalty.
  bool plain() const { return rules_.l1_regularization == 0 && rules_.monotonic_cst.empty(); }

  // Whether both sides have enough rows.
  bool enough(PackedSum left) const {
    return std::min(left, counts_->total - left) >= static_cast<PackedSum>(rules_.min_samples_leaf);
  }

  void add(const NodeToSplit& node, const PackedSum* prefix, std::size_t n, std::int8_t sign,
           double l2, double* gains) const {
    if (plain()) {
      const PackedScale& scale = node.scale;
      const double units = std::ceil(rules_.min_hessian_leaf / scale.hessian);
      const auto rows = static_cast<double>(rules_.min_samples_leaf);
      const double least = std::max(1.0, scale.counts ? std::max(units, rows) : units);
      const double parent = plain_score(unpack(node.total, scale), rules_.l2_regularization);
      common::dispatch<add_gains>({prefix, n, node.total, scale, l2, least, parent}, gains);
      return;
    }
    for (std::size_t i = 0; i < n; ++i) {
      gains[i] += 2 * gain_of(node, prefix[i], sign, l2, rules_);
    }
  }

  void search_numbers(std::uint32_t feature, BinSplit& best) const {
    const table::BinnedColumn& column = matrix_.column(feature);
    const std::int8_t sign =
        rules_.monotonic_cst.empty() ? std::int8_t{0} : rules_.monotonic_cst[feature];
    const std::uint32_t n_cuts = column.has_missing ? column.n_bins : column.n_bins - 1;
    if (n_cuts == 0) return;
    const int n_directions = column.has_missing ? 2 : 1;
    CodeSums own;
    CodeSums prefix;
    for (int direction = 0; direction < n_directions; ++direction) {
      std::array<double, most_codes> gains{};
      for (const NodeToSplit& node : nodes_) {
        const PackedSum* const sums = sums_of(matrix_, feature, node, own);
        PackedSum left = direction == 1 ? sums[column.missing_code()] : 0;
        for (std::uint32_t code = 0; code < n_cuts; ++code) prefix[code] = left += sums[code];
        add(node, prefix.data(), n_cuts, sign, rules_.l2_regularization, gains.data());
      }
      if (counts_ != nullptr) {
        const PackedSum* const sums = sums_of(matrix_, feature, *counts_, own);
        PackedSum left = direction == 1 ? sums[column.missing_code()] : 0;
        for (std::uint32_t code = 0; code < n_cuts; ++code) {
          left += sums[code];
          if (!enough(left)) gains[code] = 0;
        }
      }
      for (std::uint32_t code = 0; code < n_cuts; ++code) {
        const double gain = 0.5 * gains[code] - rules_.min_split_gain;
        if (!(gain > std::max(best.gain, rounding_))) continue;
        best.gain = gain;
        best.code = code;
        best.missing_left = direction == 1;
      }
    }
  }

  // Orders the categories by the sums of the nodes `by`.
  void search_categories(std::uint32_t feature, std::span<const NodeToSplit> by,
                         BinSplit& best) const {
    const table::BinnedColumn& column = matrix_.column(feature);
    const std::uint32_t n_codes = column.n_codes();
    std::array<Sums, most_codes> together{};
    std::array<bool, most_codes> occurs{};
    CodeSums own;
    Sums total;
    double n_rows = 0;
    for (const NodeToSplit& node : by) {
      const PackedSum* const sums = sums_of(matrix_, feature, node, own);
      for (std::uint32_t code = 0; code < n_codes; ++code) {
        const Sums s = unpack(sums[code], node.scale);
        together[code].gradient += s.gradient;
        together[code].hessian += s.hessian;
        occurs[code] |= sums[code] != 0;
      }
      total.hessian += unpack(node.total, node.scale).hessian;
      n_rows += node.n_counted;
    }
    const double smooth = rules_.category_smooth * total.hessian / n_rows;
    std::array<double, most_codes> ratio{};
    std::array<std::uint32_t, most_codes> order{};
    std::size_t n = 0;
    for (std::uint32_t code = 0; code < n_codes; ++code) {
      if (!occurs[code]) continue;
      const double below = together[code].hessian + smooth;
      ratio[code] = below > 0 ? together[code].gradient / below : 0.0;
      order[n++] = code;
    }
    if (n < 2) return;
    std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n),
              [&](std::uint32_t a, std::uint32_t b) {
                return ratio[a] < ratio[b] || (ratio[a] == ratio[b] && a < b);
              });
    const double l2 =
        n == 2 ? rules_.l2_regularization : rules_.l2_regularization + rules_.category_l2;
    std::array<double, most_codes> gains{};
    CodeSums prefix;
    for (const NodeToSplit& node : nodes_) {
      const PackedSum* const sums = sums_of(matrix_, feature, node, own);
      PackedSum left = 0;
      for (std::size_t i = 0; i + 1 < n; ++i) prefix[i] = left += sums[order[i]];
      add(node, prefix.data(), n - 1, 0, l2, gains.data());
    }
    if (counts_ != nullptr) {
      const PackedSum* const sums = sums_of(matrix_, feature, *counts_, own);
      PackedSum left = 0;
      for (std::size_t i = 0; i + 1 < n; ++i) {
        left += sums[order[i]];
        if (!enough(left)) gains[i] = 0;
      }
    }
    std::size_t cut = n;
    for (std::size_t i = 0; i + 1 < n; ++i) {
      if (std::min(i + 1, n - i - 1) > rules_.max_category_group) continue;
      const double gain = 0.5 * gains[i] - rules_.min_split_gain;
      if (!(gain > std::max(best.gain, rounding_))) continue;
      best.gain = gain;
      cut = i;
    }
    if (cut == n) return;
    best.categorical = true;
    best.left_codes = {};
    for (std::size_t i = 0; i <= cut; ++i) {
      best.left_codes[order[i] / 64] |= std::uint64_t{1} << (order[i] % 64);
    }
    best.missing_left = column.has_missing && best.goes_left(column.missing_code(), 256);
  }

  const table::BinnedMatrix& matrix_;
  std::span<const NodeToSplit> nodes_;
  const NodeToSplit* counts_;  // null: nodes are not outputs of the same rows
  const SplitRules& rules_;
  double rounding_ = 0;
};

}  // namespace

double gain_of(const NodeToSplit& node, PackedSum left, std::int8_t sign, double l2,
               const SplitRules& rules) {
  const PackedScale& scale = node.scale;
  const Sums a = unpack(left, scale);
  const Sums b = unpack(node.total - left, scale);
  if (a.hessian < rules.min_hessian_leaf || b.hessian < rules.min_hessian_leaf) return 0;
  if (hessian_units(left) == 0 || hessian_units(node.total - left) == 0) return 0;
  if (scale.counts && std::min(hessian_units(left), hessian_units(node.total - left)) <
                          static_cast<std::uint32_t>(rules.min_samples_leaf)) {
    return 0;
  }
  const auto objective = [&](const Sums& sums, double penalty) {
    const double weight = leaf_weight(sums, rules.l1_regularization, penalty, node.bounds);
    return -(sums.gradient * weight + rules.l1_regularization * std::abs(weight) +
             0.5 * (sums.hessian + penalty) * weight * weight);
  };
  if (sign != 0) {
    const double weight_left = leaf_weight(a, rules, node.bounds);
    const double weight_right = leaf_weight(b, rules, node.bounds);
    if (sign > 0 ? weight_left > weight_right : weight_left < weight_right) return 0;
  }
  return objective(a, l2) + objective(b, l2) -
         objective(unpack(node.total, scale), rules.l2_regularization);
}

PackedSum left_sum(const table::BinnedMatrix& matrix, const NodeToSplit& node,
                   const BinSplit& split) {
  const table::BinnedColumn& column = matrix.column(split.feature);
  CodeSums own;
  const PackedSum* const sums = sums_of(matrix, split.feature, node, own);
  PackedSum left = 0;
  for (std::uint32_t code = 0; code < column.n_codes(); ++code) {
    if (split.goes_left(code, column.missing_code())) left += sums[code];
  }
  return left;
}

BinSplit find_common_split(const table::BinnedMatrix& matrix, std::span<const NodeToSplit> nodes,
                           const NodeToSplit* counts, const SplitRules& rules, int n_threads) {
  const std::size_t n_features = matrix.n_features();
  const std::uint8_t* const allowed = nodes[0].allowed;
  const CommonSearch search(matrix, nodes, counts, rules);
  std::vector<BinSplit> best(n_features);
  constexpr std::size_t block = 4;
  std::size_t n_counted = 0;  // rows of nodes without histograms
  for (const NodeToSplit& node : nodes) n_counted += node.histogram == nullptr ? node.n_rows : 0;
  const double work = 1.5 * static_cast<double>(matrix.n_codes() * nodes.size()) +
                      2.0 * static_cast<double>(n_counted * n_features);
  parallel_for((n_features + block - 1) / block, worthwhile_threads(work, n_threads, true),
               [&](std::size_t block_index, int) {
                 const std::size_t end = std::min(n_features, (block_index + 1) * block);
                 for (std::size_t f = block_index * block; f < end; ++f) {
                   if (matrix.column(f).n_codes() < 2) continue;
                   if (allowed != nullptr && allowed[f] == 0) continue;
                   best[f] = search.search(static_cast<std::uint32_t>(f));
                 }
               });
  BinSplit found;
  for (const BinSplit& split : best) {
    if (split.found() && split.gain > found.gain) found = split;
  }
  return found;
}

}  // namespace spinney::boosting
