// A criterion says how good a split is. The grower knows only this interface; each criterion brings
// its own scan over a column's entries, compiled for its own statistics.
//
// Words. A *stat* is the sums a criterion keeps about a set of rows: stat[0] is their weight, the
// rest is the criterion's. A *score* orders the splits of one node (larger is better); it differs
// from the impurity decrease by a constant and a factor that the node's splits share. A *scan*
// walks one column of one node in the order of values and keeps the best split in `best`; of equal
// scores the first met stays.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "spinney/common/types.h"
#include "spinney/criterion/lanes.h"
#include "spinney/table/coded_column.h"
#include "spinney/table/entry.h"

namespace spinney::criterion {

enum class CriterionKind : std::uint8_t {
  gini,
  entropy,
  misclassification,
  squared_error,
  poisson,
  absolute_error,
};

constexpr bool is_classification(CriterionKind kind) {
  return kind <= CriterionKind::misclassification;
}

// What the tree is fitted to. Arrays are indexed by row; several outputs lie one after another.
struct Targets {
  std::size_t n_rows = 0;
  std::size_t n_outputs = 1;
  std::vector<std::uint32_t> n_classes;   // classification: per output
  const std::uint32_t* labels = nullptr;  // classification: [output * n_rows + row]
  const double* values = nullptr;         // regression: [output * n_rows + row]
  const double* weights = nullptr;        // null: every row counts once
  bool integral_weights = false;          // all weights are integers and their sum is exact
};

struct SplitLimits {
  common::Row min_samples_leaf = 1;
  double min_weight_leaf = 0;
};

// Stands for the value that a column leaves implicit, where a row of that value is asked for.
constexpr common::Row implicit_row = std::numeric_limits<common::Row>::max();

struct Split {
  double score = -std::numeric_limits<double>::infinity();
  double tie = -std::numeric_limits<double>::infinity();  // decides between equal scores
  std::int32_t feature = -1;
  bool categorical = false;
  bool missing_left = false;
  bool only_missing_right = false;  // numeric: everything that is not missing goes left
  // Numeric: false if n_left, below, above and missing_left are found only as rows are divided.
  bool settled = true;
  common::Row n_left = 0;
  // Numeric: left are the codes up to left_code; below and above are rows with the two values
  // between which the threshold lies.
  common::Code left_code = 0;
  common::Row below = 0;
  common::Row above = 0;
  // Random thresholds are drawn as values, not found between two rows.
  bool drawn = false;
  double threshold = 0;
  // Categorical: the codes that go left, ascending (missing_code among them if missing_left). Of a
  // column in one order throughout the tree they are all such codes, not only those of the node.
  std::vector<common::Code> left_codes;
  bool ordered = false;

  bool found() const { return feature >= 0; }
  // Ready for another search; keeps the memory of left_codes.
  void clear() {
    score = tie = -std::numeric_limits<double>::infinity();
    feature = -1;
    categorical = drawn = ordered = false;
    settled = true;
    left_codes.clear();
  }
};

struct NodeView {
  common::Row n_rows = 0;
  const double* stat = nullptr;
  double lower = -std::numeric_limits<double>::infinity();  // bounds from monotonic constraints
  double upper = std::numeric_limits<double>::infinity();
};

struct ScanRequest {
  NodeView node;
  const table::CodedColumn* column = nullptr;
  const table::Entry* entries = nullptr;
  common::Row n_entries = 0;
  std::int32_t feature = 0;
  // Part of a numeric column: the entries are those of a range of values, and this the stat and the
  // number of the rows before them; the rows after them have no entries either.
  const double* before = nullptr;
  common::Row n_before = 0;
  int monotonic = 0;  // +1: the value may not fall as the feature rises; -1: not rise; 0: free
  SplitLimits limits;

  common::Row n_implicit() const { return node.n_rows - n_entries; }
};

// One per thread: buffers a scan may use.
struct ScanScratch {
  std::vector<std::int64_t> counts;
  std::vector<double> sums;
  std::vector<double> group_stats;
  std::vector<double> errors;
  std::vector<std::uint32_t> ranks;
  std::vector<std::uint32_t> links;
  std::vector<table::Entry> sequence;
  std::vector<std::uint32_t> cell_counts;
  std::vector<MeanCell> mean_cells;
  std::vector<common::Row> rows;
};

// One per node in work: what a criterion prepares once for all columns of the node.
struct NodeScratch {
  std::vector<std::uint64_t> keys;
  std::vector<double> sorted;  // absolute error: the node's targets in ascending order, per output
  std::vector<double> weights;
};

class Criterion {
 public:
  virtual ~Criterion() = default;

  virtual std::size_t stat_size() const = 0;
  // Fills stat with the sums over the rows, in the order given.
  virtual void sum(const common::Row* rows, common::Row n_rows, double* stat) const = 0;
  virtual double impurity(const double* stat) const = 0;
  // The node's value: class fractions, means or medians, [output * width + class].
  virtual void value(const double* stat, double* out) const = 0;
  // The number that monotonic constraints bound: the first class's fraction, or the value.
  virtual double bounded_value(const double* stat) const = 0;
  // The score of a split into two sets of rows whose stats are known.
  virtual double score(const double* left, const double* right) const = 0;

  // A score that only splits into two pure sides reach; once a column has one, no other column can
  // do better. Infinity where the criterion cannot tell.
  virtual double perfect_score(const NodeView& node) const {
    return node.n_rows == 2 ? -std::numeric_limits<double>::max()
                            : std::numeric_limits<double>::infinity();
  }

  // What rounding may add to a score: one column beats another only by more than this.
  virtual double rounding(const NodeView& node) const {
    static_cast<void>(node);
    return 0;
  }

  virtual void prepare(const common::Row* rows, common::Row n_rows, NodeScratch& scratch) const {
    static_cast<void>(rows);
    static_cast<void>(n_rows);
    static_cast<void>(scratch);
  }
  virtual void scan(const ScanRequest& request, const NodeScratch& node_scratch,
                    ScanScratch& scratch, Split& best) const = 0;

  // What follows is for nodes that own their rows only. Lanes and cells: whether the criterion can
  // scan them in such a node; the rows' targets, to travel with them; the scans.
  virtual bool has_lanes() const { return false; }
  virtual bool fits_lanes(const NodeView& node) const { return node.n_rows <= max_lane_rows; }
  virtual void load(const common::Row*, common::Row, RowTargets&) const {}
  virtual void scan_lanes(const NodeView&, const LaneTask&, const LaneKeys*, LaneBest&) const {}
  virtual CellCut scan_cells(const NodeView&, const CellTask&, ScanScratch&) const { return {}; }
  // stat = the sums over the rows.
  virtual void sum(const RowSpan& rows, double* stat) const { sum(rows.rows, rows.n, stat); }
  // stats[lane] = the sums over the rows whose values are at most those of `cut`; n_rows[lane] =
  // how many they are.
  virtual void sum_lanes(const LaneTask& task, const LaneValues* values, const LaneValues& cut,
                         double* stats, common::Row* n_rows, ScanScratch& scratch) const;
  // The same for one column; returns how many they are.
  virtual common::Row sum_below(const RowSpan& rows, const double* values, double cut, double* stat,
                                ScanScratch& scratch) const;

  // Whether sums are exact, so that one child's is the node's less the other's.
  virtual bool has_exact_sums() const { return false; }
  // Whether columns may leave a value implicit: the stat of the rows not listed must then be the
  // node's less the others'.
  virtual bool is_additive() const { return true; }
};

std::unique_ptr<Criterion> make_criterion(CriterionKind kind, const Targets& targets,
                                          const table::EntryLayout& layout);

}  // namespace spinney::criterion
