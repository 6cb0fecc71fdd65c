#include "spinney/criterion/classification.h"

#include <algorithm>
#include <cmath>

#include "spinney/common/check.h"
#include "spinney/common/dispatch.h"
#include "spinney/common/log.h"
#include "spinney/criterion/class_lanes.h"
#include "spinney/criterion/scan.h"

namespace spinney::criterion {

using common::Row;

namespace {

constexpr double log2_e = 1.4426950408889634;

double log2_of(double x) { return common::log(x) * log2_e; }

// ---------------------------------------------------------------------------------------------
// Base of all classification criteria. stat = [weight, class weights of output 0, of output 1, …].

class ClassCounts : public Criterion {
 public:
  ClassCounts(CriterionKind kind, const Targets& targets, const table::EntryLayout& layout)
      : kind_(kind), targets_(targets), layout_(layout) {
    for (const std::uint32_t k : targets.n_classes) {
      n_labels_ += k;
      width_ = std::max<std::size_t>(width_, k);
    }
  }

  std::size_t stat_size() const override { return 1 + n_labels_; }

  void sum(const Row* rows, Row n_rows, double* stat) const override {
    std::fill(stat, stat + stat_size(), 0.0);
    const std::uint32_t* labels = targets_.labels;
    double* counts = stat + 1;
    for (std::size_t o = 0; o < targets_.n_outputs; ++o) {
      if (targets_.weights == nullptr) {
        for (Row i = 0; i < n_rows; ++i) counts[labels[rows[i]]] += 1.0;
      } else {
        for (Row i = 0; i < n_rows; ++i) counts[labels[rows[i]]] += targets_.weights[rows[i]];
      }
      counts += targets_.n_classes[o];
      labels += targets_.n_rows;
    }
    if (targets_.weights == nullptr) {
      stat[0] = static_cast<double>(n_rows);
    } else {
      for (Row i = 0; i < n_rows; ++i) stat[0] += targets_.weights[rows[i]];
    }
  }

  double impurity(const double* stat) const override {
    const double* counts = stat + 1;
    double total = 0;
    for (std::size_t o = 0; o < targets_.n_outputs; ++o) {
      const std::uint32_t n_classes = targets_.n_classes[o];
      double sum = 0;
      double largest = 0;
      for (std::uint32_t k = 0; k < n_classes; ++k) {
        const double fraction = counts[k] / stat[0];
        largest = std::max(largest, fraction);
        if (kind_ == CriterionKind::gini) sum += fraction * fraction;
        if (kind_ == CriterionKind::entropy && fraction > 0) sum -= fraction * log2_of(fraction);
      }
      if (kind_ == CriterionKind::gini) total += 1.0 - sum;
      if (kind_ == CriterionKind::entropy) total += sum;
      if (kind_ == CriterionKind::misclassification) total += 1.0 - largest;
      counts += n_classes;
    }
    return total / static_cast<double>(targets_.n_outputs);
  }

  void value(const double* stat, double* out) const override {
    const double* counts = stat + 1;
    for (std::size_t o = 0; o < targets_.n_outputs; ++o) {
      for (std::uint32_t k = 0; k < targets_.n_classes[o]; ++k) out[k] = counts[k] / stat[0];
      counts += targets_.n_classes[o];
      out += width_;
    }
  }

  double bounded_value(const double* stat) const override { return stat[1] / stat[0]; }
  bool has_exact_sums() const override {
    return targets_.weights == nullptr || targets_.integral_weights;
  }
  double perfect_score(const NodeView& node) const override {
    // Multiclass Gini scores Σ of squares / weight; two pure sides reach the node's weight.
    const double pure =
        kind_ == CriterionKind::entropy || (kind_ == CriterionKind::gini && scores_pairs())
            ? 0.0
            : node.stat[0] * static_cast<double>(targets_.n_outputs);
    return pure - 1e-12 * node.stat[0];
  }

  double score(const double* left, const double* right) const override {
    return -(left[0] * impurity(left) + right[0] * impurity(right));
  }

  // Whether the scan's score is −(pairs of different classes) instead of Σ of squares.
  bool scores_pairs() const {
    return targets_.n_outputs == 1 && targets_.n_classes[0] == 2 &&
           (targets_.weights == nullptr || targets_.integral_weights);
  }

 protected:
  CriterionKind kind_;
  Targets targets_;
  table::EntryLayout layout_;
  std::size_t n_labels_ = 0;
  std::size_t width_ = 0;
};

// The weight of a row as an integer; 1 without weights.
template <bool weighted>
struct IntegerWeights {
  const double* weights;
  SPINNEY_INLINE std::int64_t operator()(const table::EntryLayout& layout,
                                         table::Entry entry) const {
    if constexpr (weighted) return static_cast<std::int64_t>(weights[layout.row(entry)]);
    return 1;
  }
};

// Base of the integer scanners of one output.
template <bool weighted>
class IntegerScanner {
 public:
  static constexpr bool has_tie = false;
  static constexpr bool has_cheap_score = true;

  IntegerScanner(const table::EntryLayout& layout, const Targets& targets)
      : layout_(layout),
        labels_(targets.labels),
        weight_{targets.weights},
        n_classes_(targets.n_classes[0]) {}

  const table::EntryLayout& layout() const { return layout_; }
  std::size_t stat_size() const { return 1 + n_classes_; }
  bool one_dimensional() const { return n_classes_ <= 2; }
  std::size_t n_directions() const { return n_classes_ <= 2 ? 1 : n_classes_; }
  double order_key(const double* stat, std::size_t direction) const {
    return stat[1 + (n_classes_ == 2 ? 1 : direction)] / stat[0];
  }
  void add(double* stat, table::Entry entry) const {
    const auto w = static_cast<double>(weight_(layout_, entry));
    stat[0] += w;
    stat[1 + label(entry)] += w;
  }

 protected:
  SPINNEY_INLINE std::uint32_t label(table::Entry entry) const {
    // The entry contains the label unless it did not fit.
    return layout_.label_bits > 0 ? layout_.label(entry) : labels_[layout_.row(entry)];
  }

  table::EntryLayout layout_;
  const std::uint32_t* labels_;
  IntegerWeights<weighted> weight_;
  std::uint32_t n_classes_;
};

// Gini with two classes: the left weight of the second class is the only state.
template <bool weighted>
class BinaryGini : public IntegerScanner<weighted> {
 public:
  using Base = IntegerScanner<weighted>;
  BinaryGini(const table::EntryLayout& layout, const Targets& targets, const double* reciprocals)
      : Base(layout, targets), reciprocals_(reciprocals) {}

  SPINNEY_INLINE void reset(const double* total) {
    left_ = left_ones_ = 0;
    total_ = static_cast<std::int64_t>(total[0]);
    ones_ = static_cast<std::int64_t>(total[2]);
  }
  SPINNEY_INLINE void move(table::Entry entry) {
    const std::int64_t w = this->weight_(this->layout_, entry);
    const std::int64_t label = this->label(entry);
    if constexpr (weighted) {
      left_ += w;
      left_ones_ += label * w;
    } else {
      left_ones_ += label;
    }
  }
  void move_block(const double* stat) {
    left_ += static_cast<std::int64_t>(stat[0]);
    left_ones_ += static_cast<std::int64_t>(stat[2]);
  }
  void move_back(const double* stat) {
    left_ -= static_cast<std::int64_t>(stat[0]);
    left_ones_ -= static_cast<std::int64_t>(stat[2]);
  }
  SPINNEY_INLINE double score(Row n_left, Row n_right) const {
    // Σ of squares = w² − 2·ones·zeros. The w terms are the same for all splits of the node.
    const std::int64_t left = left_weight_int(n_left);
    const std::int64_t right = total_ - left;
    const std::int64_t right_ones = ones_ - left_ones_;
    const auto left_mix = static_cast<double>(left_ones_ * (left - left_ones_));
    const auto right_mix = static_cast<double>(right_ones * (right - right_ones));
    if constexpr (weighted) {
      // Rounds as without weights, so that weight k and k repeated rows give the same bits.
      return -(left_mix * (1.0 / static_cast<double>(left)) +
               right_mix * (1.0 / static_cast<double>(right)));
    } else {
      return -(left_mix * reciprocals_[n_left] + right_mix * reciprocals_[n_right]);
    }
  }
  double tie(Row, Row) const { return 0; }
  double left_weight(Row n_left) const { return static_cast<double>(left_weight_int(n_left)); }
  double right_weight(Row n_right) const {
    return weighted ? static_cast<double>(total_ - left_) : static_cast<double>(n_right);
  }
  double left_value(Row n_left) const {
    const double left = left_weight(n_left);
    return (left - static_cast<double>(left_ones_)) / left;
  }
  double right_value(Row n_right) const {
    const double right = right_weight(n_right);
    return (right - static_cast<double>(ones_ - left_ones_)) / right;
  }

 private:
  SPINNEY_INLINE std::int64_t left_weight_int(Row n_left) const {
    return weighted ? left_ : static_cast<std::int64_t>(n_left);
  }
  const double* reciprocals_;
  std::int64_t left_ = 0;
  std::int64_t left_ones_ = 0;
  std::int64_t total_ = 0;
  std::int64_t ones_ = 0;
};

// Gini with any number of classes. The sums of squares are updated in integers: if a class has c
// rows on the left and t in total, moving a row adds 2c+1 to the left sum and 2c+1−2t to the right.
template <bool weighted>
class ManyClassGini : public IntegerScanner<weighted> {
 public:
  using Base = IntegerScanner<weighted>;
  ManyClassGini(const table::EntryLayout& layout, const Targets& targets, const double* reciprocals,
                ScanScratch& scratch)
      : Base(layout, targets), reciprocals_(reciprocals) {
    scratch.counts.resize(2 * static_cast<std::size_t>(this->n_classes_));
    left_ = scratch.counts.data();
    twice_total_ = left_ + this->n_classes_;
  }

  SPINNEY_INLINE void reset(const double* total) {
    left_weight_ = left_squares_ = 0;
    offset_ = 0;
    total_ = static_cast<std::int64_t>(total[0]);
    for (std::uint32_t k = 0; k < this->n_classes_; ++k) {
      const auto count = static_cast<std::int64_t>(total[1 + k]);
      left_[k] = 0;
      twice_total_[k] = 2 * count;
      offset_ += count * count;
    }
  }
  SPINNEY_INLINE void move(table::Entry entry) {
    shift(this->label(entry), this->weight_(this->layout_, entry));
  }
  void move_block(const double* stat) {
    for (std::uint32_t k = 0; k < this->n_classes_; ++k) {
      shift(k, static_cast<std::int64_t>(stat[1 + k]));
    }
  }
  void move_back(const double* stat) {
    for (std::uint32_t k = 0; k < this->n_classes_; ++k) {
      shift(k, -static_cast<std::int64_t>(stat[1 + k]));
    }
  }
  SPINNEY_INLINE double score(Row n_left, Row n_right) const {
    const auto left = static_cast<double>(left_squares_);
    const auto right = static_cast<double>(left_squares_ + offset_);
    if constexpr (weighted) {
      // Rounds as without weights, so that weight k and k repeated rows give the same bits.
      return left * (1.0 / static_cast<double>(left_weight_)) +
             right * (1.0 / static_cast<double>(total_ - left_weight_));
    } else {
      return left * reciprocals_[n_left] + right * reciprocals_[n_right];
    }
  }
  double tie(Row, Row) const { return 0; }
  double left_weight(Row n_left) const {
    return weighted ? static_cast<double>(left_weight_) : static_cast<double>(n_left);
  }
  double right_weight(Row n_right) const {
    return weighted ? static_cast<double>(total_ - left_weight_) : static_cast<double>(n_right);
  }
  double left_value(Row n) const { return static_cast<double>(left_[0]) / left_weight(n); }
  double right_value(Row n) const {
    return static_cast<double>(twice_total_[0] / 2 - left_[0]) / right_weight(n);
  }

 private:
  SPINNEY_INLINE void shift(std::uint32_t k, std::int64_t w) {
    const std::int64_t left = left_[k];
    left_[k] = left + w;
    left_squares_ += w * (2 * left + w);
    offset_ -= w * twice_total_[k];
    if constexpr (weighted) left_weight_ += w;
  }
  const double* reciprocals_;
  std::int64_t* left_;         // weight of each class on the left
  std::int64_t* twice_total_;  // twice its weight in the node
  std::int64_t left_weight_ = 0;
  std::int64_t left_squares_ = 0;
  std::int64_t offset_ = 0;  // right sum of squares minus the left one
  std::int64_t total_ = 0;
};

// Entropy: Σ c·log2 c over classes, updated with fixed-point values of a table. Rounding errors do
// not accumulate, and equal splits have equal scores.
template <bool weighted>
class TabledEntropy : public IntegerScanner<weighted> {
 public:
  using Base = IntegerScanner<weighted>;
  TabledEntropy(const table::EntryLayout& layout, const Targets& targets, const std::int64_t* table,
                ScanScratch& scratch)
      : Base(layout, targets), table_(table) {
    scratch.counts.resize(2 * static_cast<std::size_t>(this->n_classes_));
    counts_ = scratch.counts.data();
  }

  SPINNEY_INLINE void reset(const double* total) {
    left_ = sum_ = 0;
    total_ = static_cast<std::int64_t>(total[0]);
    for (std::uint32_t k = 0; k < this->n_classes_; ++k) {
      const auto count = static_cast<std::int64_t>(total[1 + k]);
      counts_[2 * k] = 0;
      counts_[2 * k + 1] = count;
      sum_ += table_[count];
    }
  }
  SPINNEY_INLINE void move(table::Entry entry) {
    shift(this->label(entry), this->weight_(this->layout_, entry));
  }
  void move_block(const double* stat) {
    for (std::uint32_t k = 0; k < this->n_classes_; ++k) {
      shift(k, static_cast<std::int64_t>(stat[1 + k]));
    }
  }
  void move_back(const double* stat) {
    for (std::uint32_t k = 0; k < this->n_classes_; ++k) {
      shift(k, -static_cast<std::int64_t>(stat[1 + k]));
    }
  }
  SPINNEY_INLINE double score(Row, Row) const {
    return static_cast<double>(sum_ - table_[left_] - table_[total_ - left_]);
  }
  double tie(Row, Row) const { return 0; }
  double left_weight(Row) const { return static_cast<double>(left_); }
  double right_weight(Row) const { return static_cast<double>(total_ - left_); }
  double left_value(Row n) const { return static_cast<double>(counts_[0]) / left_weight(n); }
  double right_value(Row n) const { return static_cast<double>(counts_[1]) / right_weight(n); }

 private:
  SPINNEY_INLINE void shift(std::uint32_t k, std::int64_t w) {
    std::int64_t* const count = counts_ + 2 * k;
    sum_ -= table_[count[0]] + table_[count[1]];
    count[0] += w;
    count[1] -= w;
    sum_ += table_[count[0]] + table_[count[1]];
    left_ += w;
  }
  const std::int64_t* table_;
  std::int64_t* counts_;
  std::int64_t left_ = 0;
  std::int64_t total_ = 0;
  std::int64_t sum_ = 0;
};

// Any criterion, weights and number of outputs: class weights in float64. The score is computed
// from scratch at every boundary, because a running score would accumulate rounding errors.
template <CriterionKind kind>
class RealScanner {
 public:
  static constexpr bool has_tie = kind == CriterionKind::misclassification;
  static constexpr bool has_cheap_score = false;

  RealScanner(const table::EntryLayout& layout, const Targets& targets, std::size_t n_labels,
              ScanScratch& scratch)
      : layout_(layout), targets_(targets), n_labels_(n_labels) {
    scratch.sums.resize(2 * (n_labels + 1));
    left_ = scratch.sums.data();
    right_ = left_ + n_labels + 1;
  }

  const table::EntryLayout& layout() const { return layout_; }
  std::size_t stat_size() const { return 1 + n_labels_; }
  bool one_dimensional() const { return n_labels_ <= 2; }
  std::size_t n_directions() const { return n_labels_ <= 2 ? 1 : n_labels_; }
  double order_key(const double* stat, std::size_t direction) const {
    return stat[1 + (n_labels_ == 2 ? 1 : direction)] / stat[0];
  }
  void reset(const double* total) {
    total_ = total;
    std::fill(left_, left_ + n_labels_ + 1, 0.0);
    std::copy(total, total + n_labels_ + 1, right_);
  }
  void add(double* stat, table::Entry entry) const {
    const Row row = layout_.row(entry);
    const double w = targets_.weights != nullptr ? targets_.weights[row] : 1.0;
    stat[0] += w;
    const std::uint32_t* label = targets_.labels + row;
    double* counts = stat + 1;
    for (std::size_t o = 0; o < targets_.n_outputs; ++o) {
      counts[*label] += w;
      counts += targets_.n_classes[o];
      label += targets_.n_rows;
    }
  }
  void move(table::Entry entry) {
    const Row row = layout_.row(entry);
    const double w = targets_.weights != nullptr ? targets_.weights[row] : 1.0;
    left_[0] += w;
    right_[0] = total_[0] - left_[0];
    const std::uint32_t* label = targets_.labels + row;
    std::size_t first = 1;
    for (std::size_t o = 0; o < targets_.n_outputs; ++o) {
      const std::size_t k = first + *label;
      left_[k] += w;
      right_[k] = total_[k] - left_[k];
      first += targets_.n_classes[o];
      label += targets_.n_rows;
    }
  }
  void move_block(const double* stat) { shift(stat, 1.0); }
  void move_back(const double* stat) { shift(stat, -1.0); }
  double score(Row, Row) const { return side(left_) + side(right_); }
  double tie(Row, Row) const { return squares(left_) + squares(right_); }
  double left_weight(Row) const { return left_[0]; }
  double right_weight(Row) const { return right_[0]; }
  double left_value(Row) const { return left_[1] / left_[0]; }
  double right_value(Row) const { return right_[1] / right_[0]; }

 private:
  void shift(const double* stat, double sign) {
    for (std::size_t k = 0; k <= n_labels_; ++k) {
      left_[k] += sign * stat[k];
      right_[k] = total_[k] - left_[k];
    }
  }
  double squares(const double* stat) const {
    double sum = 0;
    for (std::size_t k = 1; k <= n_labels_; ++k) sum += stat[k] * stat[k];
    return sum / stat[0];
  }
  double side(const double* stat) const {
    if constexpr (kind == CriterionKind::gini) {
      return squares(stat);
    } else if constexpr (kind == CriterionKind::entropy) {
      double sum = 0;
      for (std::size_t k = 1; k <= n_labels_; ++k) {
        if (stat[k] > 0) sum += stat[k] * common::log(stat[k]);
      }
      return sum - static_cast<double>(targets_.n_outputs) * stat[0] * common::log(stat[0]);
    } else {
      double sum = 0;
      const double* counts = stat + 1;
      for (std::size_t o = 0; o < targets_.n_outputs; ++o) {
        sum += *std::max_element(counts, counts + targets_.n_classes[o]);
        counts += targets_.n_classes[o];
      }
      return sum;
    }
  }
  table::EntryLayout layout_;
  const Targets& targets_;
  std::size_t n_labels_;
  const double* total_ = nullptr;
  double* left_ = nullptr;
  double* right_ = nullptr;
};

template <bool weighted>
class Gini final : public ClassCounts, public LaneCriterion {
 public:
  Gini(const Targets& targets, const table::EntryLayout& layout)
      : ClassCounts(CriterionKind::gini, targets, layout) {
    if constexpr (!weighted) {
      reciprocals_.resize(targets.n_rows + 1);
      for (std::size_t n = 1; n <= targets.n_rows; ++n) {
        reciprocals_[n] = 1.0 / static_cast<double>(n);
      }
    }
    has_lanes_ = targets.n_classes[0] <= max_lane_classes;
    for (std::size_t row = 0; weighted && has_lanes_ && row < targets.n_rows; ++row) {
      has_lanes_ = targets.weights[row] < 65536;  // packed into 16 bits
    }
  }

  const LaneCriterion* lanes() const override { return has_lanes_ ? this : nullptr; }
  bool fits_lanes(const NodeView& node) const override {
    return node.n_rows <= max_lane_rows && node.stat[0] <= max_lane_weight;
  }
  void load(const Row* rows, Row n, RowTargets& out) const override {
    out.packed.resize(n);
    for (Row i = 0; i < n; ++i) {
      const auto w = weighted ? static_cast<std::uint32_t>(targets_.weights[rows[i]]) : 1U;
      out.packed[i] = (w << 16) | targets_.labels[rows[i]];
    }
  }
  void sum_rows(const RowSpan& rows, double* stat) const override {
    sum_classes(targets_.n_classes[0], rows, stat);
  }
  void scan_lanes(const NodeView& node, const LaneTask& task, const LaneKeys* keys,
                  LaneBest& best) const override {
    scan_gini_lanes(targets_.n_classes[0], node.stat, task, keys, best);
  }
  CellCut scan_cells(const NodeView& node, const CellTask& task,
                     ScanScratch& scratch) const override {
    return scan_gini_cells(targets_.n_classes[0], node.stat, task, scratch.cell_counts);
  }
  void sum_lanes(const LaneTask& task, const LaneValues* values, const LaneValues& cut,
                 double* stats, Row* n_rows) const override {
    sum_class_lanes(targets_.n_classes[0], task, values, cut, stats, n_rows);
  }
  Row sum_below(const RowSpan& rows, const double* values, double cut,
                double* stat) const override {
    return sum_classes_below(targets_.n_classes[0], rows, values, cut, stat);
  }
  double score(const double* left, const double* right) const override {
    double of_left = 0;
    double of_right = 0;
    for (std::size_t k = 1; k < stat_size(); ++k) {
      of_left += left[k] * left[k];
      of_right += right[k] * right[k];
    }
    return of_left / left[0] + of_right / right[0];
  }
  void scan(const ScanRequest& request, const NodeScratch&, ScanScratch& scratch,
            Split& best) const override {
    if (targets_.n_classes[0] == 2) {
      BinaryGini<weighted> scanner(layout_, targets_, reciprocals_.data());
      if (!is_dense(request, layout_)) return scan_other(scanner, request, scratch, best);
      if constexpr (weighted) {
        scan_dense(scanner, request, best);
      } else {
        common::dispatch<scan_dense_kernel<BinaryGini<weighted>>>(scanner, request, best);
      }
    } else {
      ManyClassGini<weighted> scanner(layout_, targets_, reciprocals_.data(), scratch);
      if (!is_dense(request, layout_)) return scan_other(scanner, request, scratch, best);
      if constexpr (weighted) {
        scan_dense(scanner, request, best);
      } else {
        common::dispatch<scan_dense_kernel<ManyClassGini<weighted>>>(scanner, request, best);
      }
    }
  }

 private:
  std::vector<double> reciprocals_;  // 1/i for i = 0 … n_rows: a product is cheaper than a division
  bool has_lanes_ = false;
};

template <bool weighted>
class Entropy final : public ClassCounts {
 public:
  Entropy(const Targets& targets, const table::EntryLayout& layout, std::size_t total_weight)
      : ClassCounts(CriterionKind::entropy, targets, layout), table_(total_weight + 1) {
    // The largest number of fraction bits with which twice the largest sum does not overflow.
    const auto n = static_cast<double>(total_weight);
    const int whole_bits =
        2 + static_cast<int>(std::ceil(log2_of(std::max(2.0, n * log2_of(std::max(2.0, n))))));
    const double scale = std::ldexp(1.0, 62 - whole_bits);
    for (std::size_t c = 2; c <= total_weight; ++c) {
      const auto x = static_cast<double>(c);
      table_[c] = static_cast<std::int64_t>(std::nearbyint(x * log2_of(x) * scale));
    }
  }
  void scan(const ScanRequest& request, const NodeScratch&, ScanScratch& scratch,
            Split& best) const override {
    TabledEntropy<weighted> scanner(layout_, targets_, table_.data(), scratch);
    if (!is_dense(request, layout_)) return scan_other(scanner, request, scratch, best);
    if constexpr (weighted) {
      scan_dense(scanner, request, best);
    } else {
      common::dispatch<scan_dense_kernel<TabledEntropy<weighted>>>(scanner, request, best);
    }
  }

 private:
  std::vector<std::int64_t> table_;
};

template <CriterionKind kind>
class RealClassification final : public ClassCounts {
 public:
  RealClassification(const Targets& targets, const table::EntryLayout& layout)
      : ClassCounts(kind, targets, layout) {}
  void scan(const ScanRequest& request, const NodeScratch&, ScanScratch& scratch,
            Split& best) const override {
    RealScanner<kind> scanner(layout_, targets_, n_labels_, scratch);
    if (!is_dense(request, layout_)) return scan_other(scanner, request, scratch, best);
    scan_dense(scanner, request, best);
  }
};

// Σ weights if a table of that length is affordable; otherwise 0.
std::size_t table_length(const Targets& targets) {
  constexpr double largest = 4'000'000;  // 32 MB
  if (targets.weights == nullptr) {
    return static_cast<double>(targets.n_rows) <= largest ? targets.n_rows : 0;
  }
  if (!targets.integral_weights) return 0;
  double total = 0;
  for (std::size_t row = 0; row < targets.n_rows; ++row) total += targets.weights[row];
  return total <= largest ? static_cast<std::size_t>(total) : 0;
}

}  // namespace

std::unique_ptr<Criterion> make_classification(CriterionKind kind, const Targets& targets,
                                               const table::EntryLayout& layout) {
  const bool integers =
      targets.n_outputs == 1 && (targets.weights == nullptr || targets.integral_weights);
  const bool weighted = targets.weights != nullptr;
  if (kind == CriterionKind::gini) {
    if (!integers)
      return std::make_unique<RealClassification<CriterionKind::gini>>(targets, layout);
    if (weighted) return std::make_unique<Gini<true>>(targets, layout);
    return std::make_unique<Gini<false>>(targets, layout);
  }
  if (kind == CriterionKind::entropy) {
    const std::size_t length = integers ? table_length(targets) : 0;
    if (length == 0) {
      return std::make_unique<RealClassification<CriterionKind::entropy>>(targets, layout);
    }
    if (weighted) return std::make_unique<Entropy<true>>(targets, layout, length);
    return std::make_unique<Entropy<false>>(targets, layout, length);
  }
  return std::make_unique<RealClassification<CriterionKind::misclassification>>(targets, layout);
}

}  // namespace spinney::criterion
