// Random splits: each column drawn is cut at one place, uniformly between the smallest and largest
// value that the node's rows have there (categories go left or right by the toss of a coin), and
// the best of these cuts is taken. Eight columns are gathered and summed at a time.
#include <algorithm>
#include <cmath>
#include <limits>

#include "spinney/common/dispatch.h"
#include "spinney/common/random.h"
#include "spinney/tree/feature_draw.h"
#include "spinney/tree/search.h"

namespace spinney {
namespace {

struct Batch {
  std::size_t feature[n_lanes];
  std::size_t n = 0;
};

struct Ranges {
  double low[n_lanes];
  double high[n_lanes];
  std::uint32_t missing[n_lanes];
};

template <class Value>
SPINNEY_INLINE void gather_lanes(const Value* values, std::size_t stride, const Row* rows, Row n,
                                 const Batch& batch, Value* out, Ranges& ranges) {
  constexpr Value infinity = std::numeric_limits<Value>::infinity();
  alignas(64) Value low[n_lanes];
  alignas(64) Value high[n_lanes];
  alignas(64) std::uint32_t missing[n_lanes] = {};
  for (std::size_t l = 0; l < n_lanes; ++l) {
    low[l] = infinity;
    high[l] = -infinity;
  }
  for (Row i = 0; i < n; ++i) {
    const Value* const row = values + static_cast<std::size_t>(rows[i]) * stride;
    Value* const to = out + static_cast<std::size_t>(i) * n_lanes;
    for (std::size_t l = 0; l < n_lanes; ++l) to[l] = row[batch.feature[l]];
    for (std::size_t l = 0; l < n_lanes; ++l) {
      const Value value = to[l];
      low[l] = value < low[l] ? value : low[l];
      high[l] = value > high[l] ? value : high[l];
      missing[l] |= value != value ? 1U : 0U;
    }
  }
  for (std::size_t l = 0; l < n_lanes; ++l) {
    ranges.low[l] = static_cast<double>(low[l]);
    ranges.high[l] = static_cast<double>(high[l]);
    ranges.missing[l] = missing[l];
  }
}

struct Thresholds {
  double at[n_lanes];
  std::uint32_t missing_left[n_lanes];  // all bits or none
};

// masks = all bits where the row goes left.
template <class Value>
SPINNEY_INLINE void cut_lanes(const Value* values, Row n, const Thresholds& cut, LaneKeys* masks) {
  for (Row i = 0; i < n; ++i) {
    const Value* const row = values + static_cast<std::size_t>(i) * n_lanes;
    for (std::size_t l = 0; l < n_lanes; ++l) {
      const std::uint32_t below = static_cast<double>(row[l]) <= cut.at[l] ? ~0U : 0U;
      const std::uint32_t missing = row[l] != row[l] ? ~0U : 0U;
      masks[i].lane[l] = below | (missing & cut.missing_left[l]);
    }
  }
}

#define SPINNEY_FOR_VALUES(Value)                                                               \
  SPINNEY_KERNEL void gather_values(const Value* values, std::size_t stride, const Row* rows,   \
                                    Row n, const Batch& batch, Value* out, Ranges& ranges) {    \
    gather_lanes(values, stride, rows, n, batch, out, ranges);                                  \
  }                                                                                             \
  SPINNEY_KERNEL void cut_values(const Value* values, Row n, const Thresholds& cut,             \
                                 LaneKeys* masks) {                                             \
    cut_lanes(values, n, cut, masks);                                                           \
  }
SPINNEY_FOR_VALUES(float)
SPINNEY_FOR_VALUES(double)
#undef SPINNEY_FOR_VALUES

class RandomSearch final : public Search {
 public:
  RandomSearch(SearchInputs inputs, const PreparedTable& prepared)
      : in_(std::move(inputs)), values_(prepared.values) {
    n_drawn_ = in_.n_features_drawn();
  }

  std::vector<Row>& rows() override { return in_.rows; }
  void open(Node&) override {}

  void find(Node& node, Worker& worker, int, Split& best) override {
    if (worker.features.empty()) worker.features = in_.features();
    FeatureDraw draw(worker.features, worker.swaps,
                     Stream(in_.options.seed, Purpose::features, node.key));
    Stream thresholds(in_.options.seed, Purpose::thresholds, node.key);
    bool any_varies = false;
    Batch batch;
    // Constant columns count among those drawn, but at least one must not be constant.
    for (std::size_t n_drawn = 0; draw.has_next() && (n_drawn < n_drawn_ || !any_varies);) {
      const bool beyond = n_drawn >= n_drawn_;  // looking for one that varies, no more
      const std::size_t wanted = beyond ? n_lanes : std::min(n_lanes, n_drawn_ - n_drawn);
      batch.n = 0;
      while (batch.n < wanted && draw.has_next()) {
        batch.feature[batch.n++] = static_cast<std::size_t>(draw.next());
      }
      for (std::size_t l = batch.n; l < n_lanes; ++l) batch.feature[l] = batch.feature[0];
      n_drawn += batch.n;
      any_varies |= try_batch(node, batch, beyond, thresholds, worker, best);
    }
  }

  void divide_rows(const Node& node, const Split& split, Worker& worker) override {
    Row* const rows = in_.rows.data() + node.begin;
    const Row n = node.n_rows();
    if (worker.rows.size() < n) worker.rows.resize(n);
    Row* const spare = worker.rows.data();
    Row n_left = 0;
    Row n_right = 0;
    values_.visit([&](const auto* values, std::size_t stride) {
      const auto* column = values + split.feature;
      for (Row i = 0; i < n; ++i) {
        const Row row = rows[i];
        const auto value = static_cast<double>(column[row * stride]);
        const Row left = goes_left(split, value) ? 1 : 0;
        rows[n_left] = row;
        spare[n_right] = row;
        n_left += left;
        n_right += 1 - left;
      }
    });
    std::copy(spare, spare + n_right, rows + n_left);
  }

  void divide_columns(const Node&, Node&, Node&, Worker&, int) override {}

  double threshold(const Split& split) const override {
    return split.categorical ? std::numeric_limits<double>::quiet_NaN() : split.threshold;
  }

  double cost(const Node& node) const override {
    return 6.0 * static_cast<double>(node.n_rows()) * static_cast<double>(n_drawn_);
  }

 private:
  const Column& column(std::size_t feature) const { return in_.table.columns[feature]; }
  Code missing_code(std::size_t feature) const {
    return static_cast<Code>(column(feature).n_categories);
  }
  Code code_of(double value, std::size_t feature) const {
    return std::isnan(value) ? missing_code(feature) : static_cast<Code>(value);
  }

  bool goes_left(const Split& split, double value) const {
    if (split.categorical) {
      return std::binary_search(split.left_codes.begin(), split.left_codes.end(),
                                code_of(value, static_cast<std::size_t>(split.feature)));
    }
    return (value <= split.threshold) | ((value != value) & split.missing_left);
  }

  bool try_batch(const Node& node, const Batch& batch, bool only_first, Stream& stream,
                 Worker& worker, Split& best) const {
    const Row n = node.n_rows();
    const Row* rows = in_.rows.data() + node.begin;
    Ranges ranges;
    if (worker.lanes.size() < n) worker.lanes.resize(n);
    LaneKeys* const masks = worker.lanes.data();
    // Lanes that vary, with their questions.
    std::size_t n_useful = 0;
    values_.visit([&](const auto* values, std::size_t stride) {
      using Value = std::remove_const_t<std::remove_pointer_t<decltype(values)>>;
      worker.values.resize(std::max<std::size_t>(worker.values.size(), n * n_lanes));
      Value* const gathered = reinterpret_cast<Value*>(worker.values.data());
      gather_values(values, stride, rows, n, batch, gathered, ranges);
      Thresholds cut;
      for (std::size_t l = 0; l < n_lanes; ++l) {
        cut.at[l] = -std::numeric_limits<double>::infinity();
        cut.missing_left[l] = 0;
      }
      bool any_categorical = false;
      for (std::size_t l = 0; l < batch.n && !(only_first && n_useful > 0); ++l) {
        Question& question = worker.questions[l];
        question.asked = draw(node, batch.feature[l], ranges, l, gathered, n, stream, question);
        if (!question.asked) continue;
        ++n_useful;
        any_categorical |= question.categorical;
        if (question.categorical) continue;
        cut.at[l] = question.threshold;
        cut.missing_left[l] = question.missing_left ? ~0U : 0U;
      }
      if (n_useful == 0) return;
      for (std::size_t l = n_asked(worker, batch, only_first); l < n_lanes; ++l) {
        worker.questions[l].asked = false;
      }
      cut_values(gathered, n, cut, masks);
      if (any_categorical) {
        for (std::size_t l = 0; l < batch.n; ++l) {
          const Question& question = worker.questions[l];
          if (!question.asked || !question.categorical) continue;
          for (Row i = 0; i < n; ++i) {
            const auto value = static_cast<double>(gathered[i * n_lanes + l]);
            masks[i].lane[l] = question.has(code_of(value, batch.feature[l])) ? ~0U : 0U;
          }
        }
      }
    });
    if (n_useful == 0) return false;
    judge(node, batch, worker, best);
    return true;
  }

  // How many lanes have been decided upon: all of the batch, or those up to the first that varies.
  static std::size_t n_asked(const Worker& worker, const Batch& batch, bool only_first) {
    if (!only_first) return batch.n;
    std::size_t l = 0;
    while (l < batch.n && !worker.questions[l].asked) ++l;
    return std::min(l + 1, batch.n);
  }

  // Draws a lane's question; false if the column does not vary in the node.
  template <class Value>
  bool draw(const Node&, std::size_t feature, const Ranges& ranges, std::size_t lane,
            const Value* gathered, Row n, Stream& stream, Question& question) const {
    const bool has_missing = ranges.missing[lane] != 0;
    question.has_missing = has_missing;
    question.categorical = column(feature).kind == ColumnKind::categorical;
    if (question.categorical) return draw_categories(feature, lane, gathered, n, stream, question);
    const double low = ranges.low[lane];
    const double high = ranges.high[lane];
    if (low > high || (low == high && !has_missing)) return false;
    const double u = stream.uniform();
    question.threshold = low * (1 - u) + high * u;  // high - low could overflow
    if (!(question.threshold >= low && question.threshold < high)) question.threshold = low;
    if (in_.options.narrow_thresholds) question.threshold = narrowed(question.threshold, low, high);
    question.missing_left = has_missing && stream.below(2) == 1;
    return true;
  }

  // Each category of the node goes left or right by the toss of a coin, both sides used.
  template <class Value>
  bool draw_categories(std::size_t feature, std::size_t lane, const Value* gathered, Row n,
                       Stream& stream, Question& question) const {
    std::vector<Code>& present = question.present;
    present.clear();
    for (Row i = 0; i < n; ++i) {
      present.push_back(code_of(static_cast<double>(gathered[i * n_lanes + lane]), feature));
    }
    std::sort(present.begin(), present.end());
    present.erase(std::unique(present.begin(), present.end()), present.end());
    if (present.size() < 2) return false;
    question.left_codes.clear();
    for (const Code code : present) {
      if (stream.below(2) == 1) question.left_codes.push_back(code);
    }
    const std::size_t chosen = stream.below(present.size());
    if (question.left_codes.empty()) question.left_codes.push_back(present[chosen]);
    if (question.left_codes.size() == present.size()) {
      question.left_codes.erase(question.left_codes.begin() + static_cast<std::ptrdiff_t>(chosen));
    }
    question.missing_left = question.has(missing_code(feature));
    return true;
  }

  // Scores the questions by the stats of their left sides, and keeps the best.
  void judge(const Node& node, const Batch& batch, Worker& worker, Split& best) const {
    const Row n = node.n_rows();
    const Row* rows = in_.rows.data() + node.begin;
    const std::size_t size = in_.criterion.stat_size();
    const auto min_rows = static_cast<Row>(std::max<std::int64_t>(1, in_.options.min_samples_leaf));
    Row n_left[n_lanes];
    worker.left_stat.resize(n_lanes * size);
    worker.right_stat.resize(size);
    in_.criterion.sum_lanes(rows, n, worker.lanes.data(), worker.left_stat.data(), n_left,
                            worker.scans[0]);
    for (std::size_t l = 0; l < batch.n; ++l) {
      const Question& question = worker.questions[l];
      if (!question.asked) continue;
      const Row n_right = n - n_left[l];
      if (n_left[l] < min_rows || n_right < min_rows) continue;
      const double* left = worker.left_stat.data() + l * size;
      double* const right = worker.right_stat.data();
      if (in_.criterion.is_additive()) {
        for (std::size_t k = 0; k < size; ++k) right[k] = node.stat[k] - left[k];
      } else {
        worker.rows.clear();
        for (Row i = 0; i < n; ++i) {
          if (worker.lanes[i].lane[l] == 0) worker.rows.push_back(rows[i]);
        }
        in_.criterion.sum(worker.rows.data(), n_right, right);
      }
      const double min_weight = in_.options.min_weight_leaf;
      if (left[0] < min_weight || right[0] < min_weight) continue;
      if (!keeps_order(node, batch.feature[l], left, right)) continue;
      const double score = in_.criterion.score(left, right);
      if (!(score > best.score)) continue;
      best.clear();
      best.score = score;
      best.drawn = true;
      best.feature = static_cast<std::int32_t>(batch.feature[l]);
      best.categorical = question.categorical;
      best.threshold = question.threshold;
      best.only_missing_right = false;
      best.n_left = n_left[l];
      best.missing_left = question.has_missing ? question.missing_left : n_left[l] > n_right;
      if (question.categorical) best.left_codes = question.left_codes;
    }
  }

  bool keeps_order(const Node& node, std::size_t feature, const double* left,
                   const double* right) const {
    const int sign = in_.options.monotonic.empty() ? 0 : in_.options.monotonic[feature];
    if (sign == 0) return true;
    const double a = in_.criterion.bounded_value(left);
    const double b = in_.criterion.bounded_value(right);
    return a >= node.lower && b >= node.lower && a <= node.upper && b <= node.upper &&
           (a - b) * sign <= 0;
  }

  SearchInputs in_;
  const ValueMatrix& values_;
  std::size_t n_drawn_ = 0;
};

}  // namespace

std::unique_ptr<Search> make_random_search(SearchInputs inputs, const PreparedTable& prepared) {
  return std::make_unique<RandomSearch>(std::move(inputs), prepared);
}

}  // namespace spinney
