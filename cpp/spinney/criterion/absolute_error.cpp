#include "spinney/criterion/absolute_error.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <type_traits>

#include "spinney/common/dispatch.h"
#include "spinney/table/radix_sort.h"

namespace spinney::criterion {

using common::Row;

namespace {

// A doubly linked list of the remaining ranks. Rank r is at index r+1; 0 and n+1 are the ends.
struct Links {
  std::uint32_t* next;
  std::uint32_t* previous;

  static std::size_t size(Row n) { return 2 * (static_cast<std::size_t>(n) + 2); }
  Links(std::uint32_t* memory, Row n) : next(memory), previous(memory + n + 2) {
    std::iota(next, next + n + 2, 1U);
    previous[0] = 0;
    std::iota(previous + 1, previous + n + 2, 0U);
  }
  SPINNEY_INLINE void remove(std::uint32_t at) {
    const std::uint32_t before = previous[at];
    const std::uint32_t after = next[at];
    next[before] = after;
    previous[after] = before;
  }
};

SPINNEY_INLINE double if_true(bool condition, double value) {
  return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) &
                               (0 - static_cast<std::uint64_t>(condition)));
}

// The median of sorted targets and the sum of absolute deviations from it, updated while rows are
// removed one by one. A removed row is below the median at random: selections replace branches.
class ShrinkingMedian {
 public:
  ShrinkingMedian(const double* sorted, const double*, Row n, std::uint32_t* memory)
      : y_(sorted - 1), count_(n), middle_((n + 1) / 2), links_(memory, n) {
    for (Row rank = 1; rank <= middle_; ++rank) upper_less_lower_ -= y_[rank];
    for (Row rank = middle_ + 1; rank <= n; ++rank) upper_less_lower_ += y_[rank];
  }

  // Σ |y − median| of the remaining rows.
  SPINNEY_INLINE double error() const {
    // If the number of rows is odd, the lower half includes the middle row.
    return count_ % 2 == 1 ? upper_less_lower_ + y_[middle_] : upper_less_lower_;
  }

  SPINNEY_INLINE double median() const {
    const double low = y_[middle_];
    return count_ % 2 == 0 ? (low + y_[links_.next[middle_]]) / 2 : low;
  }

  // The lower half has ⌈count/2⌉ rows; middle_ is its last. At least one row remains.
  SPINNEY_INLINE void remove(Row rank) {
    const std::uint32_t at = rank + 1;
    const bool was_lower = at <= middle_;
    const double y = y_[at];
    if (count_ % 2 == 0) {
      // The lower half keeps its size: if it lost a row, the next row joins it.
      const std::uint32_t next = links_.next[middle_];
      upper_less_lower_ += (was_lower ? y : -y) - if_true(was_lower, 2 * y_[next]);
      middle_ = was_lower ? next : middle_;
    } else {
      // The lower half shrinks by one: if it lost no row, the middle moves to the upper half.
      const std::uint32_t previous = links_.previous[middle_];
      upper_less_lower_ += (was_lower ? y : -y) + if_true(!was_lower, 2 * y_[middle_]);
      middle_ = !was_lower || at == middle_ ? previous : middle_;
    }
    --count_;
    links_.remove(at);
  }

 private:
  const double* y_;  // indexed by rank+1
  Row count_;
  std::uint32_t middle_;
  Links links_;
  double upper_less_lower_ = 0;
};

// The weighted median: the first row at which the cumulative weight reaches half of the total.
class WeightedShrinkingMedian {
 public:
  WeightedShrinkingMedian(const double* sorted, const double* weights, Row n, std::uint32_t* memory)
      : y_(sorted - 1), w_(weights - 1), n_(n), links_(memory, n) {
    for (Row rank = 1; rank <= n; ++rank) {
      total_ += w_[rank];
      upper_sum_ += w_[rank] * y_[rank];
    }
    settle();
  }

  double error() const {
    if (middle_ == 0) return 0;
    const double median = y_[middle_];
    return (median * lower_weight_ - lower_sum_) + (upper_sum_ - median * (total_ - lower_weight_));
  }

  double median() const {
    if (middle_ == 0) return 0;
    const std::uint32_t next = links_.next[middle_];
    const bool between = lower_weight_ == total_ / 2 && next <= n_;
    return between ? (y_[middle_] + y_[next]) / 2 : y_[middle_];
  }

  void remove(Row rank) {
    const std::uint32_t at = rank + 1;
    const double w = w_[at];
    total_ -= w;
    if (at <= middle_) {
      lower_weight_ -= w;
      lower_sum_ -= w * y_[at];
      if (at == middle_) middle_ = links_.previous[middle_];
    } else {
      upper_sum_ -= w * y_[at];
    }
    links_.remove(at);
    settle();
  }

 private:
  void settle() {
    const double half = total_ / 2;
    while (middle_ != 0 && lower_weight_ - w_[middle_] >= half) {
      const double w = w_[middle_];
      lower_weight_ -= w;
      lower_sum_ -= w * y_[middle_];
      upper_sum_ += w * y_[middle_];
      middle_ = links_.previous[middle_];
    }
    while (lower_weight_ < half && links_.next[middle_] <= n_) {
      middle_ = links_.next[middle_];
      const double w = w_[middle_];
      lower_weight_ += w;
      lower_sum_ += w * y_[middle_];
      upper_sum_ -= w * y_[middle_];
    }
  }

  const double* y_;  // indexed by rank+1, as w_
  const double* w_;
  Row n_;
  Links links_;
  std::uint32_t middle_ = 0;
  double total_ = 0;
  double lower_weight_ = 0;
  double lower_sum_ = 0;
  double upper_sum_ = 0;
};

// stat = [weight, median of each output, Σ w·|y − median| over all outputs].
class AbsoluteError final : public Criterion {
 public:
  AbsoluteError(const Targets& targets, const table::EntryLayout& layout)
      : targets_(targets), layout_(layout), global_rank_(targets.n_rows * targets.n_outputs) {
    const std::size_t n = targets.n_rows;
    std::vector<std::uint32_t> order(n);
    for (std::size_t o = 0; o < targets.n_outputs; ++o) {
      const double* y = targets.values + o * n;
      std::iota(order.begin(), order.end(), 0U);
      std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return y[a] < y[b] || (y[a] == y[b] && a < b);
      });
      for (std::size_t p = 0; p < n; ++p) {
        global_rank_[o * n + order[p]] = static_cast<std::uint32_t>(p);
      }
    }
    node_rank_.resize(n * targets.n_outputs);
  }

  std::size_t stat_size() const override { return targets_.n_outputs + 2; }
  bool is_additive() const override { return false; }

  void sum(const Row* rows, Row n_rows, double* stat) const override {
    NodeScratch scratch;
    sort_targets(rows, n_rows, scratch, false);
    fill_stat(scratch, n_rows, stat);
  }

  double impurity(const double* stat) const override {
    const auto n_outputs = static_cast<double>(targets_.n_outputs);
    return std::max(0.0, stat[1 + targets_.n_outputs] / (stat[0] * n_outputs));
  }

  void value(const double* stat, double* out) const override {
    std::copy(stat + 1, stat + 1 + targets_.n_outputs, out);
  }

  double bounded_value(const double* stat) const override { return stat[1]; }

  // Bound of the rounding error of a scan's running sums.
  double rounding(const NodeView& node) const override {
    return 1e-13 * node.stat[1 + targets_.n_outputs];
  }

  double score(const double* left, const double* right) const override {
    return -(left[1 + targets_.n_outputs] + right[1 + targets_.n_outputs]);
  }

  void prepare(const Row* rows, Row n_rows, NodeScratch& scratch) const override {
    sort_targets(rows, n_rows, scratch, true);
  }

  void scan(const ScanRequest& request, const NodeScratch& node, ScanScratch& scratch,
            Split& best) const override {
    if (targets_.weights != nullptr) {
      scan_column<true>(request, node, scratch, best);
    } else {
      scan_column<false>(request, node, scratch, best);
    }
  }

 private:
  // Sorts the node's targets per output. with_ranks: also stores each row's rank.
  void sort_targets(const Row* rows, Row n_rows, NodeScratch& scratch, bool with_ranks) const {
    const std::size_t n = n_rows;
    scratch.keys.resize(2 * n);
    scratch.sorted.resize(n * targets_.n_outputs);
    if (targets_.weights != nullptr) scratch.weights.resize(n * targets_.n_outputs);
    const int rank_bits = table::bits_of(targets_.n_rows);
    for (std::size_t o = 0; o < targets_.n_outputs; ++o) {
      const std::size_t base = o * targets_.n_rows;
      for (std::size_t i = 0; i < n; ++i) {
        scratch.keys[i] =
            (static_cast<std::uint64_t>(global_rank_[base + rows[i]]) << 32) | rows[i];
      }
      std::uint64_t* keys = scratch.keys.data();
      if (n > 512) {
        keys = table::radix_sort(keys, keys + n, n, 32, 32 + rank_bits);
      } else {
        std::sort(keys, keys + n);
      }
      for (std::size_t i = 0; i < n; ++i) {
        const auto row = static_cast<Row>(keys[i]);
        scratch.sorted[o * n + i] = targets_.values[base + row];
        if (targets_.weights != nullptr) scratch.weights[o * n + i] = targets_.weights[row];
        if (with_ranks) node_rank_[base + row] = static_cast<std::uint32_t>(i);
      }
    }
  }

  void fill_stat(const NodeScratch& scratch, Row n_rows, double* stat) const {
    const std::size_t n_outputs = targets_.n_outputs;
    const std::size_t n = n_rows;
    std::fill(stat, stat + n_outputs + 2, 0.0);
    const double* weights = targets_.weights != nullptr ? scratch.weights.data() : nullptr;
    if (weights == nullptr) {
      stat[0] = static_cast<double>(n);
    } else {
      for (std::size_t i = 0; i < n; ++i) stat[0] += weights[i];
    }
    for (std::size_t o = 0; o < n_outputs; ++o) {
      const double* y = scratch.sorted.data() + o * n;
      const double* w = weights != nullptr ? weights + o * n : nullptr;
      const double median = median_of(y, w, n, stat[0]);
      stat[1 + o] = median;
      for (std::size_t i = 0; i < n; ++i) {
        stat[1 + n_outputs] += (w != nullptr ? w[i] : 1.0) * std::abs(y[i] - median);
      }
    }
  }

  // The weighted median of sorted targets; the midpoint if two targets are medians.
  static double median_of(const double* y, const double* w, std::size_t n, double total) {
    if (w == nullptr) return n % 2 == 1 ? y[n / 2] : (y[n / 2 - 1] + y[n / 2]) / 2;
    double weight = 0;
    for (std::size_t i = 0; i < n; ++i) {
      weight += w[i];
      if (weight == total / 2 && i + 1 < n) return (y[i] + y[i + 1]) / 2;
      if (weight > total / 2) return y[i];
    }
    return y[n - 1];
  }

  template <bool weighted>
  void scan_column(const ScanRequest& request, const NodeScratch& node, ScanScratch& scratch,
                   Split& best) const {
    const table::CodedColumn& column = *request.column;
    const Row n = request.n_entries;  // not additive: columns have an entry for every row
    if (column.categorical) {
      order_categories(request, scratch);
      scan_sequence<weighted>(request, node, scratch, scratch.sequence.data(), 0, n, best);
      return;
    }
    const auto* missing = std::partition_point(
        request.entries, request.entries + n,
        [&](table::Entry entry) { return layout_.code(entry) < column.missing_code; });
    const Row n_missing = static_cast<Row>(request.entries + n - missing);
    scan_sequence<weighted>(request, node, scratch, request.entries, 0, n, best);
    if (n_missing > 0 && n_missing < n) {
      scratch.sequence.assign(missing, request.entries + n);
      scratch.sequence.insert(scratch.sequence.end(), request.entries, missing);
      scan_sequence<weighted>(request, node, scratch, scratch.sequence.data(), n_missing, n, best);
    }
  }

  // Groups entries by category and orders the categories by their medians.
  void order_categories(const ScanRequest& request, ScanScratch& scratch) const {
    struct Group {
      common::Code code;
      Row begin;
      Row end;
      double median;
    };
    std::vector<Group> groups;
    std::vector<Row> rows;
    std::vector<double> stat(stat_size());
    for (Row i = 0; i < request.n_entries;) {
      const common::Code code = layout_.code(request.entries[i]);
      const Row begin = i;
      rows.clear();
      for (; i < request.n_entries && layout_.code(request.entries[i]) == code; ++i) {
        rows.push_back(layout_.row(request.entries[i]));
      }
      sum(rows.data(), static_cast<Row>(rows.size()), stat.data());
      groups.push_back({code, begin, i, stat[1]});
    }
    std::sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
      return a.median < b.median || (a.median == b.median && a.code < b.code);
    });
    scratch.sequence.clear();
    for (const Group& group : groups) {
      scratch.sequence.insert(scratch.sequence.end(), request.entries + group.begin,
                              request.entries + group.end);
    }
  }

  // Scores every boundary at which the code changes. If missing values go left, they are the first
  // n_first entries; there is no boundary inside or right after them.
  template <bool weighted>
  void scan_sequence(const ScanRequest& request, const NodeScratch& node, ScanScratch& scratch,
                     const table::Entry* sequence, Row n_first, Row n, Split& best) const {
    const table::CodedColumn& column = *request.column;
    const Row margin = std::max<Row>(request.limits.min_samples_leaf, 1);
    if (n / 2 < margin) return;
    const std::size_t n_outputs = targets_.n_outputs;
    // errors[i]: Σ of absolute errors of the first i rows and of the other rows.
    const bool bounded = request.monotonic != 0;
    scratch.errors.assign((bounded ? 3U : 1U) * (static_cast<std::size_t>(n) + 1), 0.0);
    double* const errors = scratch.errors.data();
    double* const left_medians = bounded ? errors + (n + 1) : nullptr;
    double* const right_medians =
        bounded ? errors + 2 * (static_cast<std::size_t>(n) + 1) : nullptr;
    scratch.links.resize(2 * Links::size(n));
    scratch.ranks.resize(n);
    using Median = std::conditional_t<weighted, WeightedShrinkingMedian, ShrinkingMedian>;
    for (std::size_t o = 0; o < n_outputs; ++o) {
      const std::uint32_t* rank_of = node_rank_.data() + o * targets_.n_rows;
      const double* sorted = node.sorted.data() + o * n;
      const double* weights = weighted ? node.weights.data() + o * n : nullptr;
      std::uint32_t* ranks = scratch.ranks.data();
      for (Row i = 0; i < n; ++i) ranks[i] = rank_of[layout_.row(sequence[i])];
      Median prefix(sorted, weights, n, scratch.links.data());
      Median suffix(sorted, weights, n, scratch.links.data() + Links::size(n));
      // Two independent dependency chains in one loop, so that the processor overlaps them.
      for (Row i = 1; i < n; ++i) {
        prefix.remove(ranks[n - i]);
        suffix.remove(ranks[i - 1]);
        errors[n - i] += prefix.error();
        errors[i] += suffix.error();
        if (bounded) {
          left_medians[n - i] = prefix.median();
          right_medians[i] = suffix.median();
        }
      }
    }
    // A later boundary must beat the best by more than the rounding error.
    const double slack = rounding(request.node);
    const double total = request.node.stat[0];
    const double min_weight = request.limits.min_weight_leaf;
    double left_weight = 0;
    for (Row i = 1; i < n; ++i) {
      if constexpr (weighted) left_weight += targets_.weights[layout_.row(sequence[i - 1])];
      const common::Code below = layout_.code(sequence[i - 1]);
      const common::Code above = layout_.code(sequence[i]);
      if (below == above || i <= n_first || i < margin || n - i < margin) continue;
      if (-errors[i] <= best.score + slack) continue;
      const double weight = weighted ? left_weight : static_cast<double>(i);
      if (weight < min_weight || total - weight < min_weight) continue;
      if (bounded) {
        const double left = left_medians[i];
        const double right = right_medians[i];
        if (left < request.node.lower || right < request.node.lower || left > request.node.upper ||
            right > request.node.upper || (left - right) * request.monotonic > 0) {
          continue;
        }
      }
      best.score = -errors[i];
      best.feature = request.feature;
      best.categorical = column.categorical;
      best.n_left = i;
      if (column.categorical) {
        best.left_codes.clear();
        for (Row k = 0; k < i; ++k) {
          const common::Code code = layout_.code(sequence[k]);
          if (best.left_codes.empty() || best.left_codes.back() != code) {
            best.left_codes.push_back(code);
          }
        }
        std::sort(best.left_codes.begin(), best.left_codes.end());
        bool any_missing = false;
        for (Row k = 0; k < n; ++k) any_missing |= column.is_missing(layout_.code(sequence[k]));
        best.missing_left = any_missing
                                ? std::binary_search(best.left_codes.begin(), best.left_codes.end(),
                                                     column.missing_code)
                                : i > n - i;
        best.only_missing_right = false;
      } else {
        const bool has_missing = n_first > 0 || column.is_missing(layout_.code(sequence[n - 1]));
        best.missing_left = has_missing ? n_first > 0 : i > n - i;
        best.only_missing_right = column.is_missing(above);
        best.left_code = below;
        best.below = layout_.row(sequence[i - 1]);
        best.above = layout_.row(sequence[i]);
      }
    }
  }

  Targets targets_;
  table::EntryLayout layout_;
  std::vector<std::uint32_t> global_rank_;
  // Nodes have disjoint rows, so threads write to different elements.
  mutable std::vector<std::uint32_t> node_rank_;
};

}  // namespace

std::unique_ptr<Criterion> make_absolute_error(const Targets& targets,
                                               const table::EntryLayout& layout) {
  return std::make_unique<AbsoluteError>(targets, layout);
}

}  // namespace spinney::criterion
