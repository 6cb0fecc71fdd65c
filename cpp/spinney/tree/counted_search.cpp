// All columns, by counting: the weights of a node's rows are added up by code and class, and the
// codes are looked at in their order. Pays where nodes are large, near the root.
#include <algorithm>
#include <limits>

#include "spinney/common/parallel.h"
#include "spinney/common/random.h"
#include "spinney/tree/counted_table.h"
#include "spinney/tree/search.h"

namespace spinney {
namespace {

class CountedSearch final : public Search {
 public:
  CountedSearch(SearchInputs inputs, const CountedTable& counted)
      : in_(std::move(inputs)), counted_(counted) {
    plain_ = in_.options.criterion == CriterionKind::gini && in_.targets.n_outputs == 1 &&
             in_.targets.labels != nullptr && in_.targets.weights != nullptr &&
             !in_.targets.integral_weights && in_.options.monotonic.empty();
    n_classes_ = counted.n_classes;
  }

  std::vector<Row>& rows() override { return in_.rows; }
  void open(Node&) override {}

  void sum(const Node& node, double* stat) const override {
    const Row* const rows = in_.rows.data() + node.begin;
    const Row n = node.n_rows();
    if (!plain_) return in_.criterion.sum(rows, n, stat);
    // In turns, so that an addition need not wait for the one before.
    constexpr std::size_t n_turns = 4;
    std::vector<double> sums(n_turns * n_classes_);
    for (Row i = 0; i < n; ++i) {
      const Row row = rows[i];
      sums[(i % n_turns) * n_classes_ + in_.targets.labels[row]] += in_.targets.weights[row];
    }
    std::fill(stat, stat + 1 + n_classes_, 0.0);
    for (std::size_t k = 0; k < n_classes_; ++k) {
      for (std::size_t turn = 0; turn < n_turns; ++turn) {
        stat[1 + k] += sums[turn * n_classes_ + k];
      }
      stat[0] += stat[1 + k];
    }
  }

  void find(Node& node, Worker& worker, int n_threads, Split& best) override {
    in_.criterion.prepare(in_.rows.data() + node.begin, node.n_rows(), worker.node_scratch);
    const double perfect = in_.criterion.perfect_score(node.view());
    const double rounding = in_.criterion.rounding(node.view());
    const std::size_t n = counted_.columns.size();
    std::vector<Split> found(n);
    parallel_for(n, n_threads, [&](std::size_t f, int thread) {
      ScanScratch& scratch = worker.scans[static_cast<std::size_t>(thread)];
      const CodedColumn& about = counted_.columns[f].about;
      if (plain_ && !about.categorical && !about.has_missing) {
        count(node, f, scratch, found[f]);
      } else {
        scan(node, f, worker.node_scratch, scratch, found[f]);
      }
    });
    // Of equally good columns the first wins; where a node begins is decided by its path.
    const std::size_t first = mix(node.key) % n;
    for (std::size_t i = 0; i < n && best.score < perfect; ++i) {
      Split& split = found[(first + i) % n];
      if (split.found() && (split.score > best.score + rounding ||
                            (split.score == best.score && split.tie > best.tie))) {
        std::swap(best, split);
      }
    }
  }

  void divide_rows(const Node& node, Split& split, Worker& worker) override {
    const auto feature = static_cast<std::size_t>(split.feature);
    const CountedColumn& column = counted_.columns[feature];
    Row* const rows = in_.rows.data() + node.begin;
    const Row n = node.n_rows();
    worker.rows.resize(std::max<std::size_t>(worker.rows.size(), n));
    Row* const others = worker.rows.data();
    Row n_left = 0;
    Row n_right = 0;
    const auto divide = [&](const auto& goes_left) {
      for (Row i = 0; i < n; ++i) {
        const Row row = rows[i];
        const Row side = goes_left(column.cells[row]) ? 1 : 0;
        rows[n_left] = row;
        others[n_right] = row;
        n_left += side;
        n_right += 1 - side;
      }
    };
    const std::uint32_t n_classes = counted_.n_classes;
    if (split.categorical) {
      divide([&](std::uint32_t cell) {
        const Code code = cell / n_classes;
        return std::binary_search(split.left_codes.begin(), split.left_codes.end(), code);
      });
    } else if (column.about.has_missing) {
      divide([&](std::uint32_t cell) {
        const Code code = cell / n_classes;
        return column.about.is_missing(code) ? split.missing_left : code <= split.left_code;
      });
    } else {
      const std::uint32_t end = (split.left_code + 1) * n_classes;
      divide([end](std::uint32_t cell) { return cell < end; });
      split.missing_left = n_left > n_right;
    }
    std::copy(others, others + n_right, rows + n_left);
    split.n_left = n_left;
  }

  void divide_columns(const Node&, Node&, Node&, Worker&, int) override {}

  double threshold(const Split& split) const override {
    if (split.categorical) return std::numeric_limits<double>::quiet_NaN();
    if (split.only_missing_right) return std::numeric_limits<double>::infinity();
    const Column& column = in_.table.columns[static_cast<std::size_t>(split.feature)];
    return midpoint(column.value(split.below), column.value(split.above));
  }

  double cost(const Node& node) const override {
    return 2.0 * static_cast<double>(node.n_rows()) * static_cast<double>(counted_.columns.size());
  }

 private:
  // The best cut of a column of numbers without gaps, by the sums of each code.
  void count(const Node& node, std::size_t f, ScanScratch& scratch, Split& best) const {
    const CountedColumn& column = counted_.columns[f];
    const std::size_t n_codes = column.row_of.size();
    const std::size_t width = n_classes_;
    if (n_codes < 2) return;
    std::vector<double>& sums = scratch.group_stats;
    sums.assign(n_codes * width, 0.0);
    const bool counts_rows = in_.options.min_samples_leaf > 1;
    std::vector<std::uint32_t>& counts = scratch.ranks;
    if (counts_rows) counts.assign(n_codes, 0);
    const Row* const rows = in_.rows.data() + node.begin;
    const Row n = node.n_rows();
    const std::uint32_t* const cells = column.cells.data();
    const double* const weights = in_.targets.weights;
    double* const to = sums.data();
    if (column.has_common && n == counted_.rows.size()) {
      for (const Row row : column.others) to[cells[row]] += weights[row];
      double* const common = to + column.common * width;
      for (std::size_t k = 0; k < width; ++k) {
        double rest = node.stat[1 + k];
        for (std::size_t code = 0; code < n_codes; ++code) rest -= to[code * width + k];
        common[k] = std::max(rest, 0.0);
      }
    } else {
      for (Row i = 0; i < n; ++i) to[cells[rows[i]]] += weights[rows[i]];
    }
    for (Row i = 0; counts_rows && i < n; ++i) ++counts[cells[rows[i]] / width];
    if (width == 2) {
      look_at_two_classes(node, f, sums, counts, best);
    } else {
      look_at_classes(node, f, sums, counts, scratch, best);
    }
  }

  void settle(std::size_t f, std::size_t below, std::size_t above, Split& best) const {
    const CountedColumn& column = counted_.columns[f];
    best.feature = static_cast<std::int32_t>(f);
    best.categorical = best.only_missing_right = false;
    best.left_code = static_cast<Code>(below);
    best.below = column.row_of[below];
    best.above = column.row_of[above];
  }

  // Whether both sides have enough weight and rows.
  bool allows(const Node& node, double left, double right, std::size_t n_left) const {
    const double least = std::max(1e-15 * node.stat[0], 0.0);
    if (!(left > least && right > least)) return false;
    if (left < in_.options.min_weight_leaf || right < in_.options.min_weight_leaf) return false;
    const auto fewest = static_cast<std::size_t>(in_.options.min_samples_leaf);
    return fewest <= 1 || (n_left >= fewest && node.n_rows() - n_left >= fewest);
  }

  void look_at_two_classes(const Node& node, std::size_t f, const std::vector<double>& sums,
                           const std::vector<std::uint32_t>& counts, Split& best) const {
    const std::size_t n_codes = sums.size() / 2;
    const double rounding = in_.criterion.rounding(node.view());
    const bool counts_rows = in_.options.min_samples_leaf > 1;
    double zeros = 0;
    double ones = 0;
    std::size_t n_left = 0;
    std::size_t below = n_codes;
    for (std::size_t code = 0; code < n_codes; ++code) {
      const double more_zeros = sums[2 * code];
      const double more_ones = sums[2 * code + 1];
      if (more_zeros + more_ones == 0) continue;  // no row: every row has some weight
      if (below != n_codes) {
        const double right_zeros = node.stat[1] - zeros;
        const double right_ones = node.stat[2] - ones;
        const double left = zeros + ones;
        const double right = node.stat[0] - left;
        const double score = (zeros * zeros + ones * ones) / left +
                             (right_zeros * right_zeros + right_ones * right_ones) / right;
        // Of cuts that differ by rounding the first.
        if (score > best.score + rounding && allows(node, left, right, n_left)) {
          best.score = score;
          settle(f, below, code, best);
        }
      }
      zeros += more_zeros;
      ones += more_ones;
      if (counts_rows) n_left += counts[code];
      below = code;
    }
  }

  void look_at_classes(const Node& node, std::size_t f, const std::vector<double>& sums,
                       const std::vector<std::uint32_t>& counts, ScanScratch& scratch,
                       Split& best) const {
    const std::size_t width = n_classes_;
    const std::size_t n_codes = sums.size() / width;
    const double rounding = in_.criterion.rounding(node.view());
    const bool counts_rows = in_.options.min_samples_leaf > 1;
    scratch.sums.assign(width, 0.0);
    double* const of_left = scratch.sums.data();
    double left = 0;
    std::size_t n_left = 0;
    std::size_t below = n_codes;
    for (std::size_t code = 0; code < n_codes; ++code) {
      const double* const more = sums.data() + code * width;
      double weight = 0;
      for (std::size_t k = 0; k < width; ++k) weight += more[k];
      if (weight == 0) continue;
      if (below != n_codes) {
        const double right = node.stat[0] - left;
        double left_squares = 0;
        double right_squares = 0;
        for (std::size_t k = 0; k < width; ++k) {
          const double other = node.stat[1 + k] - of_left[k];
          left_squares += of_left[k] * of_left[k];
          right_squares += other * other;
        }
        const double score = left_squares / left + right_squares / right;
        // Of cuts that differ by rounding the first.
        if (score > best.score + rounding && allows(node, left, right, n_left)) {
          best.score = score;
          settle(f, below, code, best);
        }
      }
      for (std::size_t k = 0; k < width; ++k) of_left[k] += more[k];
      left += weight;
      if (counts_rows) n_left += counts[code];
      below = code;
    }
  }

  // Any other column: its entries are put in order and scanned as usual.
  void scan(const Node& node, std::size_t f, const NodeScratch& of_node, ScanScratch& scratch,
            Split& best) const {
    const CountedColumn& column = counted_.columns[f];
    const std::size_t n_codes = column.row_of.size();
    const Row* const rows = in_.rows.data() + node.begin;
    const Row n = node.n_rows();
    std::vector<Row> starts(n_codes + 1);
    for (Row i = 0; i < n; ++i) ++starts[column.cells[rows[i]] / counted_.n_classes + 1];
    if (std::find(starts.begin(), starts.end(), n) != starts.end()) return;  // one value
    for (std::size_t code = 0; code < n_codes; ++code) starts[code + 1] += starts[code];
    std::vector<Entry> entries(n);
    for (Row i = 0; i < n; ++i) {
      const Row row = rows[i];
      const std::uint32_t label = in_.layout.label_bits > 0 ? in_.targets.labels[row] : 0;
      const Code code = column.cells[row] / counted_.n_classes;
      entries[starts[code]++] = in_.layout.pack(code, row, label);
    }
    ScanRequest request;
    request.node = node.view();
    request.column = &column.about;
    request.entries = entries.data();
    request.n_entries = n;
    request.feature = static_cast<std::int32_t>(f);
    request.monotonic = in_.options.monotonic.empty() ? 0 : in_.options.monotonic[f];
    request.limits = {static_cast<Row>(in_.options.min_samples_leaf), in_.options.min_weight_leaf};
    in_.criterion.scan(request, of_node, scratch, best);
  }

  SearchInputs in_;
  const CountedTable& counted_;
  bool plain_ = false;  // Gini of real weights: what is counted here
  std::size_t n_classes_ = 0;
};

}  // namespace

std::unique_ptr<Search> make_counted_search(SearchInputs inputs, const CountedTable& counted) {
  return std::make_unique<CountedSearch>(std::move(inputs), counted);
}

}  // namespace spinney
