// A criterion measures impurity and scores splits. Growers and searches use only this interface;
// each criterion implements its own scan over the entries of a column.
//
// Terms. A *stat* is an array of sums over a set of rows: stat[0] is the weight, the other elements
// depend on the criterion. A *score* orders the splits of one node (larger is better). It is the
// impurity decrease up to a constant and a factor that are the same for all splits of the node. A
// *scan* visits the rows of one column of one node in the order of values and stores the best split
// in `best`; the first of equal scores wins.
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

// The targets of a tree. Arrays are indexed by row; outputs follow each other.
struct Targets {
  std::size_t n_rows = 0;
  std::size_t n_outputs = 1;
  std::vector<std::uint32_t> n_classes;   // classification: per output
  const std::uint32_t* labels = nullptr;  // classification: [output * n_rows + row]
  const double* values = nullptr;         // regression: [output * n_rows + row]
  const double* weights = nullptr;        // null: every row has weight 1
  bool integral_weights = false;          // all weights are integers and their sum is exact
};

struct SplitLimits {
  common::Row min_samples_leaf = 1;
  double min_weight_leaf = 0;
};

// Stands for a row with the column's implicit value.
constexpr common::Row implicit_row = std::numeric_limits<common::Row>::max();

struct Split {
  double score = -std::numeric_limits<double>::infinity();
  double tie = -std::numeric_limits<double>::infinity();  // orders splits of equal score
  std::int32_t feature = -1;
  bool categorical = false;
  bool missing_left = false;
  bool only_missing_right = false;  // numeric: all values that are not missing go left
  // Numeric: false if partitioning the rows determines n_left, below, above and missing_left.
  bool complete = true;
  common::Row n_left = 0;
  // Numeric: codes up to left_code go left; the threshold is between the values of the rows below
  // and above.
  common::Code left_code = 0;
  common::Row below = 0;
  common::Row above = 0;
  // Random splits have a threshold instead of left_code, below and above.
  bool random = false;
  double threshold = 0;
  // Categorical: the codes that go left, ascending; missing_code is one of them if missing_left. If
  // the column has one order for the whole tree (ordered), codes absent from the node are included.
  std::vector<common::Code> left_codes;
  bool ordered = false;

  bool found() const { return feature >= 0; }
  // Resets the split; keeps the memory of left_codes.
  void clear() {
    score = tie = -std::numeric_limits<double>::infinity();
    feature = -1;
    categorical = random = ordered = false;
    complete = true;
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
  // Not null: `entries` contains only a range of a numeric column's values. `before` and n_before
  // are the stat and the number of the rows with smaller values.
  const double* before = nullptr;
  common::Row n_before = 0;
  int monotonic =
      0;  // +1: the value never decreases with the feature; -1: never increases; 0: free
  SplitLimits limits;

  common::Row n_implicit() const { return node.n_rows - n_entries; }
};

// Buffers of one thread for scans.
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

// Data that a criterion computes once for all columns of a node.
struct NodeScratch {
  std::vector<std::uint64_t> keys;
  std::vector<double> sorted;  // absolute error: the node's targets in ascending order, per output
  std::vector<double> weights;
};

class LaneCriterion;

class Criterion {
 public:
  virtual ~Criterion() = default;

  virtual std::size_t stat_size() const = 0;
  // stat = the sums over the rows, added in the given order.
  virtual void sum(const common::Row* rows, common::Row n_rows, double* stat) const = 0;
  virtual double impurity(const double* stat) const = 0;
  // out = the node's value: class fractions, means or medians, [output * width + class].
  virtual void value(const double* stat, double* out) const = 0;
  // The number that monotonic constraints bound: the first class's fraction, or the first value.
  virtual double bounded_value(const double* stat) const = 0;
  // The score of a split into two sets of rows with these stats.
  virtual double score(const double* left, const double* right) const = 0;

  // The score of a split into two pure sides. A search can stop at a column that reaches it.
  // Infinity if unknown.
  virtual double perfect_score(const NodeView& node) const {
    return node.n_rows == 2 ? -std::numeric_limits<double>::max()
                            : std::numeric_limits<double>::infinity();
  }

  // Bound of the rounding error of scores: a column must beat another by more than this.
  virtual double rounding(const NodeView& node) const {
    static_cast<void>(node);
    return 0;
  }

  // Computes the data of a node that scans of its columns share.
  virtual void prepare(const common::Row* rows, common::Row n_rows, NodeScratch& scratch) const {
    static_cast<void>(rows);
    static_cast<void>(n_rows);
    static_cast<void>(scratch);
  }
  virtual void scan(const ScanRequest& request, const NodeScratch& node_scratch,
                    ScanScratch& scratch, Split& best) const = 0;

  // Whether sums are exact, so that stat(child) = stat(parent) − stat(sibling).
  virtual bool has_exact_sums() const { return false; }
  // Whether stat(A ∪ B) = stat(A) + stat(B) for disjoint A and B, up to rounding. Columns may have
  // an implicit value only then.
  virtual bool is_additive() const { return true; }

  // The scans over several columns at once; null if the criterion or its targets have none.
  virtual const LaneCriterion* lanes() const { return nullptr; }
};

// Scans over several columns of a node at once, for searches that gather columns at each node.
class LaneCriterion {
 public:
  virtual ~LaneCriterion() = default;

  // Stores the targets of the rows, for RowSpan.
  virtual void load(const common::Row* rows, common::Row n_rows, RowTargets& targets) const = 0;
  // stat = the sums over the rows.
  virtual void sum_rows(const RowSpan& rows, double* stat) const = 0;
  // Whether scan_lanes supports nodes of this size and weight.
  virtual bool fits_lanes(const NodeView& node) const { return node.n_rows <= max_lane_rows; }
  // The best cut of each lane; keys are sorted per lane.
  virtual void scan_lanes(const NodeView& node, const LaneTask& task, const LaneKeys* keys,
                          LaneBest& best) const = 0;
  // The best cut of one column between two cells.
  virtual CellCut scan_cells(const NodeView& node, const CellTask& task,
                             ScanScratch& scratch) const = 0;
  // For each lane, sums the rows with value <= cut: stats[lane * stat_size()] and their number.
  virtual void sum_lanes(const LaneTask& task, const LaneValues* values, const LaneValues& cut,
                         double* stats, common::Row* n_rows) const = 0;
  // The same for one column; returns the number of rows.
  virtual common::Row sum_below(const RowSpan& rows, const double* values, double cut,
                                double* stat) const = 0;
};

// LaneCriterion::sum_lanes and sum_below for any criterion.
void sum_lanes(const Criterion& criterion, const LaneTask& task, const LaneValues* values,
               const LaneValues& cut, double* stats, common::Row* n_rows, ScanScratch& scratch);
common::Row sum_below(const Criterion& criterion, const RowSpan& rows, const double* values,
                      double cut, double* stat, ScanScratch& scratch);

std::unique_ptr<Criterion> make_criterion(CriterionKind kind, const Targets& targets,
                                          const table::EntryLayout& layout);

}  // namespace spinney::criterion
