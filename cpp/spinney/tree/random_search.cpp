// Random splits (extremely randomised trees). Each drawn column gets one threshold, uniform between
// its smallest and largest value in the node; each category goes left or right with probability
// 1/2. The best of these splits wins. Eight columns are gathered and summed together.
#include <algorithm>
#include <cmath>
#include <limits>

#include "spinney/common/dispatch.h"
#include "spinney/common/random.h"
#include "spinney/tree/row_search.h"

namespace spinney::tree {

using common::broadcast;
using common::Code;
using common::dispatch;
using common::Doubles8;
using common::Longs8;
using common::Row;
using common::select;
using common::Stream;
using criterion::n_lanes;

namespace {

// Nodes up to this size gather lanes, which then fit the cache; larger nodes gather columns.
constexpr Row max_gathered_rows = 8192;

struct Ranges {
  criterion::LaneValues low;
  criterion::LaneValues high;
  bool missing[n_lanes];
};

// Writes a block of single values before it reads them back as vectors: a vector load directly
// after the narrower stores would stall (no store forwarding).
constexpr Row block_rows = 32;

template <std::size_t width, class Value>
SPINNEY_INLINE void gather_kernel(const Value* values, std::size_t stride, const Row* rows, Row n,
                                  const Batch& batch, criterion::LaneValues* out, Ranges& ranges) {
  auto low = broadcast<Doubles8>(std::numeric_limits<double>::infinity());
  auto high = -low;
  Longs8 present{};
  for (Row begin = 0; begin < n; begin += block_rows) {
    const Row end = n - begin < block_rows ? n : begin + block_rows;
    for (Row i = begin; i < end; ++i) {
      const Value* const row = values + static_cast<std::size_t>(rows[i]) * stride;
      for (std::size_t l = 0; l < width; ++l) {
        out[i].lane[l] = static_cast<double>(row[batch.feature[l]]);
      }
    }
    for (Row i = begin; i < end; ++i) {
      const auto value = common::load<Doubles8>(out[i].lane);
      low = select(value < low, value, low);
      high = select(value > high, value, high);
      present -= value == value;
    }
  }
  common::store(ranges.low.lane, low);
  common::store(ranges.high.lane, high);
  for (std::size_t l = 0; l < width; ++l) {
    ranges.missing[l] = present[l] != static_cast<std::int64_t>(n);
  }
}

// out[lane][i] = value of the i-th row.
template <std::size_t width, class Value>
SPINNEY_INLINE void gather_rows(const Value* values, std::size_t stride, const Row* rows, Row n,
                                const Batch& batch, double* const* out) {
  for (Row i = 0; i < n; ++i) {
    const Value* const row = values + static_cast<std::size_t>(rows[i]) * stride;
    for (std::size_t l = 0; l < width; ++l) {
      out[l][i] = static_cast<double>(row[batch.feature[l]]);
    }
  }
}

struct ValueRange {
  double low;
  double high;
  bool any_missing;
};

SPINNEY_INLINE ValueRange find_range(const double* values, Row n) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  std::uint64_t missing = 0;
  for (Row i = 0; i < n; ++i) {
    const double value = values[i];
    missing |= value != value ? 1U : 0U;
    low = value < low ? value : low;
    high = value > high ? value : high;
  }
  return {low, high, missing != 0};
}

class RandomSearch final : public RowSearch {
 public:
  RandomSearch(SearchInputs inputs, const PreparedTable& prepared)
      : RowSearch(std::move(inputs)), values_(prepared.values) {}

  void find(Node& node, Worker& worker, int, criterion::Split& best) override {
    if (worker.features.empty()) worker.features = in_.features();
    ColumnDraw draw(worker.features, worker.swaps,
                    Stream(in_.options.seed, common::Purpose::features, node.key), n_drawn_);
    Stream thresholds(in_.options.seed, common::Purpose::thresholds, node.key);
    bool any_varies = false;
    Batch batch;
    const bool small = node.n_rows() <= max_gathered_rows;
    while (draw.next(node, any_varies, batch)) {
      if (!small) {
        any_varies |= try_columns(node, batch, thresholds, worker, best);
        continue;
      }
      any_varies |= try_batch(node, batch, thresholds, worker, best);
    }
  }

  void partition_rows(const Node& node, criterion::Split& split, Worker& worker) override {
    const auto partition = [&](const auto& value_of) {
      if (split.categorical || split.missing_left) {
        partition_by(node, worker,
                     [&](Row row) { return goes_left(split, static_cast<double>(value_of(row))); });
      } else {
        const double threshold = split.threshold;
        partition_by(node, worker,
                     [&](Row row) { return static_cast<double>(value_of(row)) <= threshold; });
      }
    };
    const auto feature = static_cast<std::size_t>(split.feature);
    if (reads_columns(node.n_rows())) {
      values_.visit_column(
          feature, [&](const auto* values) { partition([&](Row row) { return values[row]; }); });
    } else {
      values_.visit([&](const auto* values, std::size_t stride) {
        const auto* column = values + feature;
        partition([&](Row row) { return column[row * stride]; });
      });
    }
  }

  double threshold(const criterion::Split& split) const override {
    return split.categorical ? std::numeric_limits<double>::quiet_NaN() : split.threshold;
  }

  double cost(const Node& node) const override {
    return 6.0 * static_cast<double>(node.n_rows()) * static_cast<double>(n_drawn_);
  }

 private:
  const table::Column& column(std::size_t feature) const { return in_.table.columns[feature]; }
  Code missing_code(std::size_t feature) const {
    return static_cast<Code>(column(feature).n_categories);
  }
  Code code_of(double value, std::size_t feature) const {
    return std::isnan(value) ? missing_code(feature) : static_cast<Code>(value);
  }

  bool goes_left(const criterion::Split& split, double value) const {
    if (split.categorical) {
      return std::binary_search(split.left_codes.begin(), split.left_codes.end(),
                                code_of(value, static_cast<std::size_t>(split.feature)));
    }
    return (value <= split.threshold) | ((value != value) & split.missing_left);
  }

  // Draws a split for each lane and keeps the best. The gathered values are transformed so that
  // value <= cut means left for every kind of split.
  bool try_batch(Node& node, const Batch& batch, Stream& stream, Worker& worker,
                 criterion::Split& best) const {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const Row n = node.n_rows();
    if (worker.values.size() < n) worker.values.resize(n);
    criterion::LaneValues* const gathered = worker.values.data();
    Ranges ranges;
    values_.visit([&](const auto* values, std::size_t stride) {
      using Value = std::remove_const_t<std::remove_pointer_t<decltype(values)>>;
      criterion::with_lanes(batch.n, [&](auto width) {
        dispatch<gather_kernel<width(), Value>>(values, stride, in_.rows.data() + node.begin, n,
                                                batch, gathered, ranges);
      });
    });
    criterion::LaneValues cut;
    bool any = false;
    for (std::size_t l = 0; l < n_lanes; ++l) {
      RandomSplit& random = worker.random_splits[l];
      cut.lane[l] = -infinity;
      random.valid = false;
      if (l >= batch.n || (batch.only_first && any)) continue;
      const std::size_t feature = batch.feature[l];
      random.has_missing = ranges.missing[l];
      random.categorical = column(feature).kind == table::ColumnKind::categorical;
      random.valid =
          random.categorical
              ? draw_categories(
                    feature, [&](Row i) { return gathered[i].lane[l]; }, n, stream, random)
              : draw_threshold(ranges.low.lane[l], ranges.high.lane[l], stream, random);
      if (!random.valid) {
        node.mark_constant(feature, in_.table.n_features());
        continue;
      }
      any = true;
      cut.lane[l] =
          map_to_cut(random, feature, n, [&](Row i) -> double& { return gathered[i].lane[l]; });
    }
    if (any) score_batch(node, batch, cut, worker, best);
    return any;
  }

  // Draws a threshold; false if the column does not vary in the node.
  bool draw_threshold(double low, double high, Stream& stream, RandomSplit& random) const {
    if (low > high || (low == high && !random.has_missing)) return false;
    const double u = stream.uniform();
    random.threshold = low * (1 - u) + high * u;  // high - low could overflow
    if (!(random.threshold >= low && random.threshold < high)) random.threshold = low;
    if (in_.options.narrow_thresholds) random.threshold = narrowed(random.threshold, low, high);
    // With a single value, missing values must go to the other side.
    random.missing_left = random.has_missing && stream.below(2) == 1 && low < high;
    return true;
  }

  // Sends each category of the node to a random side; neither side stays empty.
  template <class ValueAt>
  bool draw_categories(std::size_t feature, const ValueAt& value_at, Row n, Stream& stream,
                       RandomSplit& random) const {
    std::vector<Code>& present = random.present;
    present.clear();
    for (Row i = 0; i < n; ++i) {
      present.push_back(code_of(value_at(i), feature));
    }
    std::sort(present.begin(), present.end());
    present.erase(std::unique(present.begin(), present.end()), present.end());
    if (present.size() < 2) return false;
    random.left_codes.clear();
    for (const Code code : present) {
      if (stream.below(2) == 1) random.left_codes.push_back(code);
    }
    const std::size_t chosen = stream.below(present.size());
    if (random.left_codes.empty()) random.left_codes.push_back(present[chosen]);
    if (random.left_codes.size() == present.size()) {
      random.left_codes.erase(random.left_codes.begin() + static_cast<std::ptrdiff_t>(chosen));
    }
    random.missing_left = random.has(missing_code(feature));
    return true;
  }

  // Scores the random splits of a batch by the stats of their left sides; keeps the best.
  void score_batch(const Node& node, const Batch& batch, const criterion::LaneValues& cut,
                   Worker& worker, criterion::Split& best) const {
    const std::size_t size = in_.criterion.stat_size();
    Row n_left[n_lanes];
    worker.left_stat.resize(n_lanes * size);
    criterion::sum_lanes(in_.criterion, {span(node), batch.n, margin()}, worker.values.data(), cut,
                         worker.left_stat.data(), n_left, worker.scans[0]);
    for (std::size_t l = 0; l < batch.n; ++l) {
      if (!worker.random_splits[l].valid) continue;
      score_split(
          node, batch.feature[l], worker.random_splits[l], worker.left_stat.data() + l * size,
          n_left[l], [&](Row i) { return worker.values[i].lane[l] <= cut.lane[l]; }, worker, best);
    }
  }

  template <class IsLeft>
  void score_split(const Node& node, std::size_t feature, const RandomSplit& random,
                   const double* left, Row n_left, const IsLeft& is_left, Worker& worker,
                   criterion::Split& best) const {
    const std::size_t size = in_.criterion.stat_size();
    const Row n_right = node.n_rows() - n_left;
    if (n_left < margin() || n_right < margin()) return;
    worker.right_stat.resize(size);
    double* const right = worker.right_stat.data();
    if (in_.criterion.is_additive()) {
      for (std::size_t k = 0; k < size; ++k) right[k] = node.stat[k] - left[k];
    } else {
      worker.rows.clear();
      for (Row i = 0; i < node.n_rows(); ++i) {
        if (!is_left(i)) worker.rows.push_back(in_.rows[node.begin + i]);
      }
      in_.criterion.sum(worker.rows.data(), n_right, right);
    }
    const double min_weight = in_.options.min_weight_leaf;
    if (left[0] < min_weight || right[0] < min_weight) return;
    if (!keeps_order(node, feature, left, right)) return;
    const double score = in_.criterion.score(left, right);
    if (!(score > best.score)) return;
    best.clear();
    best.score = score;
    best.random = true;
    best.feature = static_cast<std::int32_t>(feature);
    best.categorical = random.categorical;
    best.threshold = random.threshold;
    best.only_missing_right = false;
    best.n_left = n_left;
    best.missing_left = random.has_missing ? random.missing_left : n_left > n_right;
    if (random.categorical) best.left_codes = random.left_codes;
  }

  // The same for a large node, column by column.
  bool try_columns(Node& node, const Batch& batch, Stream& stream, Worker& worker,
                   criterion::Split& best) const {
    const Row n = node.n_rows();
    const Row* rows = in_.rows.data() + node.begin;
    double* out[n_lanes];
    for (std::size_t l = 0; l < n_lanes; ++l) {
      if (worker.columns[l].size() < n) worker.columns[l].resize(n);
      out[l] = worker.columns[l].data();
    }
    if (reads_columns(n)) {
      for (std::size_t l = 0; l < batch.n; ++l) {
        values_.visit_column(batch.feature[l], [&](const auto* values) {
          for (Row i = 0; i < n; ++i) out[l][i] = static_cast<double>(values[rows[i]]);
        });
      }
    } else {
      values_.visit([&](const auto* values, std::size_t stride) {
        criterion::with_lanes(batch.n, [&](auto width) {
          gather_rows<width()>(values, stride, rows, n, batch, out);
        });
      });
    }
    bool any = false;
    worker.left_stat.resize(n_lanes * in_.criterion.stat_size());
    for (std::size_t l = 0; l < batch.n && !(batch.only_first && any); ++l) {
      const std::size_t feature = batch.feature[l];
      RandomSplit& random = worker.random_splits[l];
      const ValueRange range = dispatch<find_range>(out[l], n);
      random.has_missing = range.any_missing;
      random.categorical = column(feature).kind == table::ColumnKind::categorical;
      const bool varies = random.categorical
                              ? draw_categories(
                                    feature, [&](Row i) { return out[l][i]; }, n, stream, random)
                              : draw_threshold(range.low, range.high, stream, random);
      if (!varies) {
        node.mark_constant(feature, in_.table.n_features());
        continue;
      }
      any = true;
      const double cut =
          map_to_cut(random, feature, n, [&](Row i) -> double& { return out[l][i]; });
      const Row n_left = criterion::sum_below(in_.criterion, span(node), out[l], cut,
                                              worker.left_stat.data(), worker.scans[0]);
      score_split(
          node, feature, random, worker.left_stat.data(), n_left,
          [&](Row i) { return out[l][i] <= cut; }, worker, best);
    }
    return any;
  }

  // Transforms the values so that value <= cut means left; returns the cut.
  template <class ValueAt>
  double map_to_cut(const RandomSplit& random, std::size_t feature, Row n,
                    const ValueAt& value_at) const {
    if (random.categorical) {
      for (Row i = 0; i < n; ++i) {
        value_at(i) = random.has(code_of(value_at(i), feature)) ? -1 : 1;
      }
      return 0;
    }
    if (random.has_missing && random.missing_left) {
      for (Row i = 0; i < n; ++i) {
        double& value = value_at(i);
        value = value != value ? -std::numeric_limits<double>::infinity() : value;
      }
    }
    return random.threshold;
  }

  bool keeps_order(const Node& node, std::size_t feature, const double* left,
                   const double* right) const {
    const int sign = in_.options.monotonic_cst.empty() ? 0 : in_.options.monotonic_cst[feature];
    if (sign == 0) return true;
    const double a = in_.criterion.bounded_value(left);
    const double b = in_.criterion.bounded_value(right);
    return a >= node.lower && b >= node.lower && a <= node.upper && b <= node.upper &&
           (a - b) * sign <= 0;
  }

  const table::ValueMatrix& values_;
};

}  // namespace

std::unique_ptr<Search> make_random_search(SearchInputs inputs, const PreparedTable& prepared) {
  return std::make_unique<RandomSearch>(std::move(inputs), prepared);
}

}  // namespace spinney::tree
