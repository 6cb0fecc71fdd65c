// A random subset of the columns at each node. Dividing all columns would cost more than it saves,
// so a node owns only its rows: the columns drawn are gathered there and sorted (best split), or
// cut at one random place each (random split).
#include <algorithm>
#include <cmath>
#include <limits>

#include "spinney/common/dispatch.h"
#include "spinney/common/parallel.h"
#include "spinney/common/random.h"
#include "spinney/table/radix_sort.h"
#include "spinney/tree/search.h"

namespace spinney {
namespace {

// Below this many entries a comparison sort beats the radix sort's set-up.
constexpr Row radix_from = 400;

// Draws features without replacement. The permutation is put back after each node, so a draw
// depends on the node's stream alone.
class FeatureDraw {
 public:
  FeatureDraw(std::vector<std::int32_t>& features, Stream stream)
      : features_(features), stream_(stream) {}
  ~FeatureDraw() {
    for (auto swap = swaps_.rbegin(); swap != swaps_.rend(); ++swap) {
      std::swap(features_[swap->first], features_[swap->second]);
    }
  }
  FeatureDraw(const FeatureDraw&) = delete;
  FeatureDraw& operator=(const FeatureDraw&) = delete;

  bool has_next() const { return swaps_.size() < features_.size(); }
  std::int32_t next() {
    const std::size_t at = swaps_.size();
    const std::size_t chosen = at + stream_.below(features_.size() - at);
    std::swap(features_[at], features_[chosen]);
    swaps_.emplace_back(at, chosen);
    return features_[at];
  }

 private:
  std::vector<std::int32_t>& features_;
  std::vector<std::pair<std::size_t, std::size_t>> swaps_;
  Stream stream_;
};

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  bool any_missing = false;
};

// Smallest and largest value, and whether any is missing.
SPINNEY_KERNEL Range find_range(const double* values, Row n) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  unsigned missing = 0;
  for (Row i = 0; i < n; ++i) {
    const double value = values[i];
    missing |= value != value ? 1U : 0U;
    low = value < low ? value : low;
    high = value > high ? value : high;
  }
  return {low, high, missing != 0};
}

// Copies the rows to one side or the other; returns how many went left.
SPINNEY_KERNEL Row divide_by_threshold(const double* values, const Row* rows, Row n,
                                       double threshold, bool missing_left, Row* left_rows,
                                       Row* right_rows) {
  const unsigned missing_side = missing_left ? 1U : 0U;
  Row n_left = 0;
  for (Row i = 0; i < n; ++i) {
    const double value = values[i];
    left_rows[n_left] = rows[i];
    right_rows[i - n_left] = rows[i];
    n_left += static_cast<unsigned>(value <= threshold) |
              (static_cast<unsigned>(value != value) & missing_side);
  }
  return n_left;
}

class SampledSearch final : public Search {
 public:
  explicit SampledSearch(SearchInputs inputs) : in_(std::move(inputs)) {
    const std::size_t n_features = in_.table.n_features();
    n_features_drawn_ = in_.options.max_features == 0
                            ? n_features
                            : static_cast<std::size_t>(in_.options.max_features);
    columns_.resize(n_features);
    codes_.resize(n_features);
    if (in_.options.random_splits) {
      for (std::size_t f = 0; f < n_features; ++f) {
        columns_[f].categorical = in_.table.columns[f].kind == ColumnKind::categorical;
        columns_[f].missing_code = static_cast<Code>(in_.table.columns[f].n_categories);
      }
      return;
    }
    const CodingRows sample{in_.rows.data(), static_cast<Row>(in_.rows.size()), nullptr};
    EntryLayout plain;  // no label: only codes are kept
    plain.row_bits = in_.layout.row_bits;
    columns_ = code_table(in_.table, sample, plain, true, in_.options.n_threads);
    const double work = static_cast<double>(in_.table.n_rows) * static_cast<double>(n_features);
    const int n_threads = worthwhile_threads(2 * work, in_.options.n_threads);
    parallel_for(n_features, n_threads, [&](std::size_t f, int) {
      CodedColumn& column = columns_[f];
      codes_[f].assign(in_.table.n_rows, column.implicit_code);
      for (Row i = 0; i < column.n_entries; ++i) {
        codes_[f][plain.row(column.entries[i])] = plain.code(column.entries[i]);
      }
      column.entries.reset();
    });
  }

  std::vector<Row>& rows() override { return in_.rows; }
  void open(Node&) override {}

  void find(Node& node, Worker& worker, int, Split& best) override {
    if (worker.features.size() != columns_.size()) {
      worker.features.resize(columns_.size());
      for (std::size_t f = 0; f < columns_.size(); ++f) {
        worker.features[f] = static_cast<std::int32_t>(f);
      }
    }
    in_.criterion.prepare(in_.rows.data() + node.begin, node.n_rows(), worker.node_scratch);
    FeatureDraw draw(worker.features, Stream(in_.options.seed, Purpose::features, node.key));
    Stream thresholds(in_.options.seed, Purpose::thresholds, node.key);
    std::size_t n_useful = 0;
    // Constant columns count among those drawn, but at least one must not be constant.
    for (std::size_t n_drawn = 0; draw.has_next() && (n_drawn < n_features_drawn_ || n_useful == 0);
         ++n_drawn) {
      const std::int32_t feature = draw.next();
      const bool useful = in_.options.random_splits
                              ? try_random(node, feature, thresholds, worker, best)
                              : try_best(node, feature, worker, best);
      n_useful += useful;
    }
  }

  void divide_rows(const Node& node, const Split& split, Worker& worker) override {
    Row* const rows = in_.rows.data() + node.begin;
    const auto parts = divide(rows, node.n_rows(), split, worker);
    std::copy(worker.rows.begin(), worker.rows.begin() + parts.second, rows + parts.first);
  }

  void divide_columns(const Node&, Node&, Node&, Worker&, int) override {}

  double threshold(const Split& split) const override {
    if (split.categorical) return std::numeric_limits<double>::quiet_NaN();
    if (split.drawn) return split.threshold;
    if (split.only_missing_right) return std::numeric_limits<double>::infinity();
    const Column& column = in_.table.columns[static_cast<std::size_t>(split.feature)];
    return midpoint(column.value(split.below), column.value(split.above));
  }

  double cost(const Node& node) const override {
    return 30.0 * static_cast<double>(node.n_rows()) * static_cast<double>(n_features_drawn_);
  }

 private:
  ScanRequest request(const Node& node, std::int32_t feature) const {
    const auto f = static_cast<std::size_t>(feature);
    ScanRequest request;
    request.node = node.view();
    request.column = &columns_[f];
    request.feature = feature;
    request.monotonic = in_.options.monotonic.empty() ? 0 : in_.options.monotonic[f];
    request.limits = {static_cast<Row>(in_.options.min_samples_leaf), in_.options.min_weight_leaf};
    return request;
  }

  // Returns whether the column varies in the node.
  bool try_best(const Node& node, std::int32_t feature, Worker& worker, Split& best) const {
    const auto f = static_cast<std::size_t>(feature);
    const Row n = node.n_rows();
    const Row* rows = in_.rows.data() + node.begin;
    const Code* codes = codes_[f].data();
    const std::uint32_t* labels = in_.layout.label_bits > 0 ? in_.targets.labels : nullptr;
    worker.entries.resize(n);
    Code low = codes[rows[0]];
    Code high = low;
    for (Row i = 0; i < n; ++i) {
      const Row row = rows[i];
      const Code code = codes[row];
      low = std::min(low, code);
      high = std::max(high, code);
      worker.entries[i] = in_.layout.pack(code, row, labels != nullptr ? labels[row] : 0);
    }
    if (low == high) return false;
    const Entry* sorted = worker.entries.data();
    if (n < radix_from) {
      std::sort(worker.entries.begin(), worker.entries.end());
    } else {
      worker.swap.resize(n);
      const int shift = in_.layout.code_shift();
      sorted =
          radix_sort(worker.entries.data(), worker.swap.data(), n, shift, shift + bits_of(high));
    }
    ScanRequest scan = request(node, feature);
    scan.entries = sorted;
    scan.n_entries = n;
    in_.criterion.scan(scan, worker.node_scratch, worker.scans[0], best);
    return true;
  }

  bool try_random(const Node& node, std::int32_t feature, Stream& stream, Worker& worker,
                  Split& best) const {
    const auto f = static_cast<std::size_t>(feature);
    Split split;
    split.feature = feature;
    split.drawn = true;
    bool has_missing = false;
    const bool varies = columns_[f].categorical
                            ? draw_categories(node, f, stream, split, has_missing)
                            : draw_threshold(node, f, stream, worker, split, has_missing);
    if (!varies) return false;
    const Row n_left = gather_left(node, split, worker);
    const Row n_right = node.n_rows() - n_left;
    const ScanRequest limits = request(node, feature);
    if (n_left < limits.limits.min_samples_leaf || n_right < limits.limits.min_samples_leaf) {
      return true;
    }
    const std::size_t size = in_.criterion.stat_size();
    worker.left_stat.resize(size);
    worker.right_stat.resize(size);
    in_.criterion.sum(worker.rows.data(), n_left, worker.left_stat.data());
    if (in_.criterion.is_additive()) {
      for (std::size_t k = 0; k < size; ++k) {
        worker.right_stat[k] = node.stat[k] - worker.left_stat[k];
      }
    } else {
      in_.criterion.sum(worker.rows.data() + node.n_rows(), n_right, worker.right_stat.data());
    }
    const double* left = worker.left_stat.data();
    const double* right = worker.right_stat.data();
    if (left[0] < limits.limits.min_weight_leaf || right[0] < limits.limits.min_weight_leaf) {
      return true;
    }
    if (limits.monotonic != 0) {
      const double a = in_.criterion.bounded_value(left);
      const double b = in_.criterion.bounded_value(right);
      if (a < node.lower || b < node.lower || a > node.upper || b > node.upper ||
          (a - b) * limits.monotonic > 0) {
        return true;
      }
    }
    split.score = in_.criterion.score(left, right);
    split.n_left = n_left;
    if (!has_missing) split.missing_left = n_left > n_right;
    if (split.score > best.score) best = std::move(split);
    return true;
  }

  // Leaves the node's values in worker.values.
  bool draw_threshold(const Node& node, std::size_t feature, Stream& stream, Worker& worker,
                      Split& split, bool& has_missing) const {
    const Row* rows = in_.rows.data() + node.begin;
    const Row n = node.n_rows();
    worker.values.resize(std::max<std::size_t>(worker.values.size(), n));
    double* values = worker.values.data();
    gather(in_.table.columns[feature], rows, n, values);
    const Range range = find_range(values, n);
    const double low = range.low;
    const double high = range.high;
    has_missing = range.any_missing;
    if (low > high || (low == high && !has_missing)) return false;
    const double u = stream.uniform();
    split.threshold = low * (1 - u) + high * u;  // high - low could overflow
    if (!(split.threshold >= low && split.threshold < high)) split.threshold = low;
    if (has_missing) split.missing_left = stream.below(2) == 1;
    return true;
  }

  // Fills worker.rows with the rows that a drawn split sends left and, n_rows further on, with the
  // others; returns how many go left.
  Row gather_left(const Node& node, const Split& split, Worker& worker) const {
    const Row* rows = in_.rows.data() + node.begin;
    const Row n = node.n_rows();
    if (worker.rows.size() < 2 * static_cast<std::size_t>(n)) {
      worker.rows.resize(2 * static_cast<std::size_t>(n));
    }
    Row* const left_rows = worker.rows.data();
    Row* const right_rows = left_rows + n;
    if (!split.categorical) {
      return divide_by_threshold(worker.values.data(), rows, n, split.threshold, split.missing_left,
                                 left_rows, right_rows);
    }
    Row n_left = 0;
    for (Row i = 0; i < n; ++i) {
      left_rows[n_left] = rows[i];
      right_rows[i - n_left] = rows[i];
      n_left += goes_left(split, rows[i]) ? 1 : 0;
    }
    return n_left;
  }

  // Each category of the node goes left or right by the toss of a coin, both sides used.
  bool draw_categories(const Node& node, std::size_t feature, Stream& stream, Split& split,
                       bool& has_missing) const {
    const Column& column = in_.table.columns[feature];
    const Code missing_code = columns_[feature].missing_code;
    const Row* rows = in_.rows.data() + node.begin;
    std::vector<Code> present;
    for (Row i = 0; i < node.n_rows(); ++i) {
      const std::int32_t code = column.category(rows[i]);
      present.push_back(code < 0 ? missing_code : static_cast<Code>(code));
    }
    std::sort(present.begin(), present.end());
    present.erase(std::unique(present.begin(), present.end()), present.end());
    if (present.size() < 2) return false;
    split.categorical = true;
    has_missing = present.back() == missing_code;
    for (const Code code : present) {
      if (stream.below(2) == 1) split.left_codes.push_back(code);
    }
    const std::size_t chosen = stream.below(present.size());
    if (split.left_codes.empty()) split.left_codes.push_back(present[chosen]);
    if (split.left_codes.size() == present.size()) {
      split.left_codes.erase(split.left_codes.begin() + static_cast<std::ptrdiff_t>(chosen));
    }
    split.missing_left =
        std::binary_search(split.left_codes.begin(), split.left_codes.end(), missing_code);
    return true;
  }

  bool goes_left(const Split& split, Row row) const {
    const auto f = static_cast<std::size_t>(split.feature);
    const Column& column = in_.table.columns[f];
    if (split.categorical) {
      const std::int32_t code = column.category(row);
      return std::binary_search(split.left_codes.begin(), split.left_codes.end(),
                                code < 0 ? columns_[f].missing_code : static_cast<Code>(code));
    }
    if (split.drawn) {
      const double value = column.value(row);
      return std::isnan(value) ? split.missing_left : value <= split.threshold;
    }
    const Code code = codes_[f][row];
    return columns_[f].is_missing(code) ? split.missing_left : code <= split.left_code;
  }

  // In place: left rows to the front, right rows into worker.rows; how many of each.
  std::pair<Row, Row> divide(Row* rows, Row n, const Split& split, Worker& worker) const {
    if (worker.rows.size() < n) worker.rows.resize(n);
    Row n_left = 0;
    Row n_right = 0;
    for (Row i = 0; i < n; ++i) {
      const Row row = rows[i];
      const Row left = goes_left(split, row) ? 1 : 0;
      rows[n_left] = row;
      worker.rows[n_right] = row;
      n_left += left;
      n_right += 1 - left;
    }
    return {n_left, n_right};
  }

  SearchInputs in_;
  std::size_t n_features_drawn_ = 0;
  std::vector<CodedColumn> columns_;
  std::vector<std::vector<Code>> codes_;  // [feature][row]
};

}  // namespace

std::unique_ptr<Search> make_sampled_search(SearchInputs inputs) {
  return std::make_unique<SampledSearch>(std::move(inputs));
}

}  // namespace spinney
