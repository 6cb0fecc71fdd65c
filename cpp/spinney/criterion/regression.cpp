#include "spinney/criterion/regression.h"

#include <algorithm>
#include <cmath>

#include "spinney/common/dispatch.h"
#include "spinney/common/log.h"
#include "spinney/criterion/mean_lanes.h"
#include "spinney/criterion/scan.h"

namespace spinney::criterion {

using common::Row;

namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();

// The impurity's third sum, beside Σw and Σw·y: the term of one row.
template <CriterionKind kind>
double own_term(double y) {
  if constexpr (kind == CriterionKind::squared_error) return y * y;
  return y > 0 ? y * common::log(y) : 0.0;
}

// The score of a side with sum s and weight w in a node with sum `total`; larger is better.
template <CriterionKind kind>
SPINNEY_INLINE double explained(double s, double w, double total) {
  if constexpr (kind == CriterionKind::squared_error) return s * s / w;
  // A side without events has no rate: such splits are forbidden. The sum may be a difference, so
  // that rounding leaves a small number instead of zero.
  const double nothing = std::max(epsilon, 1e-12 * total);
  return s <= nothing ? -std::numeric_limits<double>::infinity() : s * common::log(s / w);
}

// The scan's data of one row with a weight; without weights it is the target alone.
struct WeightedTarget {
  double wy;
  double w;
};

template <CriterionKind kind, bool weighted>
class MeanScanner {
 public:
  static constexpr bool has_tie = false;
  static constexpr bool has_cheap_score = kind == CriterionKind::squared_error;
  using Item = std::conditional_t<weighted, WeightedTarget, double>;

  MeanScanner(const table::EntryLayout& layout, const Item* items, double shift,
              const double* reciprocals)
      : layout_(layout), items_(items), reciprocals_(reciprocals), shift_(shift) {}

  const table::EntryLayout& layout() const { return layout_; }
  std::size_t stat_size() const { return 3; }
  bool one_dimensional() const { return true; }
  std::size_t n_directions() const { return 1; }
  double order_key(const double* stat, std::size_t) const { return stat[1] / stat[0]; }

  SPINNEY_INLINE void reset(const double* total) {
    weight_ = sum_ = 0;
    total_weight_ = total[0];
    total_sum_ = total[1];
  }
  SPINNEY_INLINE void move(table::Entry entry) {
    if constexpr (weighted) {
      const WeightedTarget item = items_[layout_.row(entry)];
      weight_ += item.w;
      sum_ += item.wy;
    } else {
      sum_ += items_[layout_.row(entry)];
    }
  }
  void move_block(const double* stat) {
    weight_ += stat[0];
    sum_ += stat[1];
  }
  void move_back(const double* stat) {
    weight_ -= stat[0];
    sum_ -= stat[1];
  }
  void add(double* stat, table::Entry entry) const {
    if constexpr (weighted) {
      const WeightedTarget item = items_[layout_.row(entry)];
      stat[0] += item.w;
      stat[1] += item.wy;
    } else {
      stat[0] += 1.0;
      stat[1] += items_[layout_.row(entry)];
    }
  }
  SPINNEY_INLINE double score(Row n_left, Row n_right) const {
    const double left = left_weight(n_left);
    const double right = right_weight(n_right);
    if constexpr (kind == CriterionKind::squared_error) {
      // s_l²/w_l + s_r²/w_r = s²/w + (w·s_l − w_l·s)² / (w·w_l·w_r). The constants s²/w and 1/w are
      // left out: this saves a division, and rounding affects only the part that varies.
      const double apart = total_weight_ * sum_ - left * total_sum_;
      // The same products of reciprocals: weight k and k repeated rows give the same bits.
      if constexpr (weighted) return apart * apart * ((1.0 / left) * (1.0 / right));
      return apart * apart * (reciprocals_[n_left] * reciprocals_[n_right]);
    } else {
      return explained<kind>(sum_, left, total_sum_) +
             explained<kind>(total_sum_ - sum_, right, total_sum_);
    }
  }
  double tie(Row, Row) const { return 0; }
  SPINNEY_INLINE double left_weight(Row n_left) const {
    return weighted ? weight_ : static_cast<double>(n_left);
  }
  SPINNEY_INLINE double right_weight(Row n_right) const {
    return weighted ? total_weight_ - weight_ : static_cast<double>(n_right);
  }
  double left_value(Row n) const { return shift_ + sum_ / left_weight(n); }
  double right_value(Row n) const { return shift_ + (total_sum_ - sum_) / right_weight(n); }

 private:
  table::EntryLayout layout_;
  const Item* items_;
  const double* reciprocals_;
  double shift_;
  double weight_ = 0;
  double sum_ = 0;
  double total_weight_ = 0;
  double total_sum_ = 0;
};

// Several outputs: one sum per output; the score is the sum of their scores.
template <CriterionKind kind>
class ManyMeansScanner {
 public:
  static constexpr bool has_tie = false;
  static constexpr bool has_cheap_score = false;

  ManyMeansScanner(const table::EntryLayout& layout, const Targets& targets, const double* values,
                   ScanScratch& scratch)
      : layout_(layout), targets_(targets), values_(values), n_outputs_(targets.n_outputs) {
    scratch.sums.resize(n_outputs_);
    left_ = scratch.sums.data();
  }

  const table::EntryLayout& layout() const { return layout_; }
  std::size_t stat_size() const { return n_outputs_ + 2; }
  bool one_dimensional() const { return false; }
  std::size_t n_directions() const { return n_outputs_; }
  double order_key(const double* stat, std::size_t direction) const {
    return stat[1 + direction] / stat[0];
  }
  void reset(const double* total) {
    total_ = total;
    weight_ = 0;
    std::fill(left_, left_ + n_outputs_, 0.0);
  }
  void move(table::Entry entry) {
    const Row row = layout_.row(entry);
    const double w = weight_of(row);
    weight_ += w;
    for (std::size_t o = 0; o < n_outputs_; ++o) left_[o] += w * value_of(o, row);
  }
  void move_block(const double* stat) { shift(stat, 1.0); }
  void move_back(const double* stat) { shift(stat, -1.0); }
  void add(double* stat, table::Entry entry) const {
    const Row row = layout_.row(entry);
    const double w = weight_of(row);
    stat[0] += w;
    for (std::size_t o = 0; o < n_outputs_; ++o) stat[1 + o] += w * value_of(o, row);
  }
  double score(Row, Row) const {
    double sum = 0;
    for (std::size_t o = 0; o < n_outputs_; ++o) {
      const double total = total_[1 + o];
      sum += explained<kind>(left_[o], weight_, total) +
             explained<kind>(total - left_[o], total_[0] - weight_, total);
    }
    return sum;
  }
  double tie(Row, Row) const { return 0; }
  double left_weight(Row) const { return weight_; }
  double right_weight(Row) const { return total_[0] - weight_; }
  double left_value(Row) const { return left_[0] / weight_; }
  double right_value(Row) const { return (total_[1] - left_[0]) / (total_[0] - weight_); }

 private:
  double weight_of(Row row) const {
    return targets_.weights != nullptr ? targets_.weights[row] : 1.0;
  }
  double value_of(std::size_t o, Row row) const { return values_[o * targets_.n_rows + row]; }
  void shift(const double* stat, double sign) {
    weight_ += sign * stat[0];
    for (std::size_t o = 0; o < n_outputs_; ++o) left_[o] += sign * stat[1 + o];
  }
  table::EntryLayout layout_;
  const Targets& targets_;
  const double* values_;
  std::size_t n_outputs_;
  const double* total_ = nullptr;
  double weight_ = 0;
  double* left_;
};

// If targets are far from zero compared with their spread, their squares lose significant digits.
// Such targets are shifted by a number near their mean. The shift is a multiple of a power of two
// near the spread: the difference is exact except for outliers, and integers stay integers.
double round_shift(const double* y, std::size_t n) {
  if (n == 0) return 0;
  double low = y[0];
  double high = y[0];
  for (std::size_t i = 1; i < n; ++i) {
    low = std::min(low, y[i]);
    high = std::max(high, y[i]);
  }
  const double spread = high - low;
  const double middle = low + spread / 2;
  if (!(spread > 0) || !std::isfinite(spread) || !(std::abs(middle) > 16 * spread)) return 0;
  const double grid = std::ldexp(1.0, std::ilogb(spread));
  return std::nearbyint(middle / grid) * grid;
}

// stat = [weight, Σw·y of each output, Σw·own_term], y shifted for squared error.
template <CriterionKind kind>
class Means final : public Criterion, public LaneCriterion {
 public:
  Means(const Targets& targets, const table::EntryLayout& layout)
      : targets_(targets), layout_(layout) {
    const std::size_t n = targets.n_rows;
    shifts_.resize(targets.n_outputs);
    values_.assign(targets.values, targets.values + n * targets.n_outputs);
    for (std::size_t o = 0; o < targets.n_outputs; ++o) {
      if (kind != CriterionKind::squared_error) continue;
      shifts_[o] = round_shift(targets.values + o * n, n);
      for (std::size_t row = 0; row < n; ++row) values_[o * n + row] -= shifts_[o];
    }
    if (targets.n_outputs == 1 && targets.weights != nullptr) {
      weighted_.resize(n);
      for (std::size_t row = 0; row < n; ++row) {
        const double w = targets.weights[row];
        weighted_[row] = {w * values_[row], w};
      }
    }
    integral_ = targets.weights == nullptr || targets.integral_weights;
    if (kind == CriterionKind::squared_error && targets.n_outputs == 1 &&
        targets.weights == nullptr) {
      reciprocals_.resize(n + 1);
      for (std::size_t i = 1; i <= n; ++i) reciprocals_[i] = 1.0 / static_cast<double>(i);
    }
  }

  std::size_t stat_size() const override { return targets_.n_outputs + 2; }

  const LaneCriterion* lanes() const override {
    return kind == CriterionKind::squared_error && targets_.n_outputs == 1 ? this : nullptr;
  }
  void load(const Row* rows, Row n, RowTargets& out) const override {
    out.means.resize(n);
    for (Row i = 0; i < n; ++i) {
      const double w = targets_.weights != nullptr ? targets_.weights[rows[i]] : 1.0;
      out.means[i] = {values_[rows[i]], w};
    }
  }
  void sum_rows(const RowSpan& rows, double* stat) const override {
    double weight = 0;
    double total = 0;
    double own = 0;
    for (Row i = 0; i < rows.n; ++i) {
      const MeanTarget row = rows.means[i];
      weight += row.w;
      total += row.w * row.y;
      own += row.w * own_term<kind>(row.y);
    }
    stat[0] = weight;
    stat[1] = total;
    stat[2] = own;
  }
  void scan_lanes(const NodeView& node, const LaneTask& task, const LaneKeys* keys,
                  LaneBest& best) const override {
    scan_mean_lanes(node.stat, integral_, task, keys, best);
  }
  CellCut scan_cells(const NodeView& node, const CellTask& task,
                     ScanScratch& scratch) const override {
    return scan_mean_cells(node.stat, task, scratch.mean_cells, scratch.cell_counts);
  }
  void sum_lanes(const LaneTask& task, const LaneValues* values, const LaneValues& cut,
                 double* stats, Row* n_rows) const override {
    sum_mean_lanes(task, values, cut, stats, n_rows);
  }
  Row sum_below(const RowSpan& rows, const double* values, double cut,
                double* stat) const override {
    return sum_means_below(rows, values, cut, stat);
  }

  void sum(const Row* rows, Row n_rows, double* stat) const override {
    const std::size_t n_outputs = targets_.n_outputs;
    if (n_outputs == 1) {
      double weight = 0;
      double total = 0;
      double own = 0;
      for (Row i = 0; i < n_rows; ++i) {
        const double w = targets_.weights != nullptr ? targets_.weights[rows[i]] : 1.0;
        const double y = values_[rows[i]];
        weight += w;
        total += w * y;
        own += w * own_term<kind>(y);
      }
      stat[0] = weight;
      stat[1] = total;
      stat[2] = own;
      return;
    }
    std::fill(stat, stat + n_outputs + 2, 0.0);
    for (Row i = 0; i < n_rows; ++i) {
      const Row row = rows[i];
      const double w = targets_.weights != nullptr ? targets_.weights[row] : 1.0;
      stat[0] += w;
      for (std::size_t o = 0; o < n_outputs; ++o) {
        const double y = values_[o * targets_.n_rows + row];
        stat[1 + o] += w * y;
        stat[1 + n_outputs] += w * own_term<kind>(y);
      }
    }
  }

  double impurity(const double* stat) const override {
    const std::size_t n_outputs = targets_.n_outputs;
    double impurity = stat[1 + n_outputs] / stat[0];
    for (std::size_t o = 0; o < n_outputs; ++o) {
      const double mean = stat[1 + o] / stat[0];
      if constexpr (kind == CriterionKind::squared_error) {
        impurity -= mean * mean;
      } else {
        if (stat[1 + o] <= epsilon) return std::numeric_limits<double>::infinity();
        impurity -= mean * common::log(mean);
      }
    }
    // Rounding may make the impurity of a pure node slightly negative.
    return std::max(0.0, impurity / static_cast<double>(n_outputs));
  }

  void value(const double* stat, double* out) const override {
    for (std::size_t o = 0; o < targets_.n_outputs; ++o) {
      out[o] = shifts_[o] + stat[1 + o] / stat[0];
    }
  }

  double bounded_value(const double* stat) const override { return shifts_[0] + stat[1] / stat[0]; }

  double score(const double* left, const double* right) const override {
    double sum = 0;
    for (std::size_t o = 0; o < targets_.n_outputs; ++o) {
      const double total = left[1 + o] + right[1 + o];
      sum += explained<kind>(left[1 + o], left[0], total) +
             explained<kind>(right[1 + o], right[0], total);
    }
    return sum;
  }

  void scan(const ScanRequest& request, const NodeScratch&, ScanScratch& scratch,
            Split& best) const override {
    if (targets_.n_outputs > 1) {
      ManyMeansScanner<kind> scanner(layout_, targets_, values_.data(), scratch);
      if (is_dense(request, layout_)) {
        scan_dense(scanner, request, best);
      } else {
        scan_other(scanner, request, scratch, best);
      }
    } else if (targets_.weights != nullptr) {
      scan_one(MeanScanner<kind, true>(layout_, weighted_.data(), shifts_[0], nullptr), request,
               scratch, best);
    } else {
      scan_one(MeanScanner<kind, false>(layout_, values_.data(), shifts_[0], reciprocals_.data()),
               request, scratch, best);
    }
  }

 private:
  template <Scanner S>
  void scan_one(S scanner, const ScanRequest& request, ScanScratch& scratch, Split& best) const {
    if (!is_dense(request, layout_)) return scan_other(scanner, request, scratch, best);
    common::dispatch<scan_dense_kernel<S>>(scanner, request, best);
  }

  Targets targets_;
  table::EntryLayout layout_;
  std::vector<double> shifts_;
  std::vector<double> values_;
  std::vector<WeightedTarget> weighted_;
  bool integral_ = false;
  std::vector<double> reciprocals_;  // 1/i for i = 0 … n_rows: a product is cheaper than a division
};

}  // namespace

std::unique_ptr<Criterion> make_regression(CriterionKind kind, const Targets& targets,
                                           const table::EntryLayout& layout) {
  if (kind == CriterionKind::poisson) {
    return std::make_unique<Means<CriterionKind::poisson>>(targets, layout);
  }
  return std::make_unique<Means<CriterionKind::squared_error>>(targets, layout);
}

}  // namespace spinney::criterion
