// How a node's best split is found and its rows are divided.
#pragma once

#include <algorithm>
#include <array>
#include <memory>

#include "spinney/tree/feature_draw.h"
#include "spinney/tree/grower.h"
#include "spinney/tree/node.h"
#include "spinney/tree/prepared_table.h"

namespace spinney::tree {

// A question that was drawn, not found.
struct Question {
  bool asked = false;
  bool categorical = false;
  bool has_missing = false;  // some of the node's rows are missing there
  bool missing_left = false;
  double threshold = 0;
  std::vector<common::Code> left_codes;  // ascending
  std::vector<common::Code> present;     // scratch

  bool has(common::Code code) const {
    return std::binary_search(left_codes.begin(), left_codes.end(), code);
  }
};

// What one thread needs while it works on nodes.
struct Worker {
  criterion::NodeScratch node_scratch;
  std::vector<criterion::ScanScratch> scans;  // one per thread that scans for this worker
  std::vector<common::Row> rows;
  std::vector<table::Entry> entries;
  std::vector<table::Entry> swap;
  std::vector<std::int32_t> features;
  FeatureDraw::Swaps swaps;
  std::vector<criterion::LaneKeys> lanes;
  std::vector<std::uint8_t> cells;
  std::array<std::vector<common::Code>, common::n_lanes> codes;  // of each lane
  std::array<std::vector<double>, common::n_lanes> columns;      // values of each lane
  criterion::RowTargets targets;
  std::array<Question, common::n_lanes> questions;
  std::vector<criterion::LaneValues> values;
  std::vector<double> left_stat;
  std::vector<double> right_stat;
  criterion::Split split;
  criterion::Split challenger;
};

class Search {
 public:
  virtual ~Search() = default;

  // The root's rows, in ascending order.
  virtual std::vector<common::Row>& rows() = 0;
  // Fills the root's segments, if the search works on segments.
  virtual void open(Node& root) = 0;
  // Looks for the node's best split and leaves it in `best`, which comes empty; may drop columns
  // that it finds constant from node.segments.
  virtual void find(Node& node, Worker& worker, int n_threads, criterion::Split& best) = 0;
  // Divides the node's rows, stably, so that the left ones come first; completes the split if it is
  // not settled.
  virtual void divide_rows(const Node& node, criterion::Split& split, Worker& worker) = 0;
  // stat = the sums over the node's rows.
  virtual void sum(const Node& node, double* stat) const = 0;
  // Divides the node's segments between its children, which know their rows and whether they are
  // terminal; a terminal child gets none.
  virtual void divide_columns(const Node& node, Node& left, Node& right, Worker& worker,
                              int n_threads) = 0;
  // The threshold that becomes part of the tree.
  virtual double threshold(const criterion::Split& split) const = 0;
  // Nanoseconds that find and divide may take on a node of this size, roughly.
  virtual double cost(const Node& node) const = 0;
};

struct SearchInputs {
  const table::Table& table;
  const criterion::Targets& targets;
  const GrowOptions& options;
  const table::EntryLayout& layout;
  const criterion::Criterion& criterion;
  std::vector<common::Row> rows;  // rows of positive weight

  // The features that a tree may use, and how many of them a node looks at.
  std::vector<std::int32_t> features() const {
    std::vector<std::int32_t> all = options.features;
    for (std::size_t f = 0; options.features.empty() && f < table.n_features(); ++f) {
      all.push_back(static_cast<std::int32_t>(f));
    }
    return all;
  }
  std::size_t n_features_drawn() const {
    const std::size_t n = options.features.empty() ? table.n_features() : options.features.size();
    const auto wanted = static_cast<std::size_t>(options.max_features);
    return wanted == 0 ? n : std::min(n, wanted);
  }
};

// coded: the columns, if they have been coded already. They stay as they are.
std::unique_ptr<Search> make_presorted_search(
    SearchInputs inputs, const std::vector<table::CodedColumn>* coded = nullptr);
std::unique_ptr<Search> make_sampled_search(SearchInputs inputs, const PreparedTable& prepared);
std::unique_ptr<Search> make_random_search(SearchInputs inputs, const PreparedTable& prepared);

// Halfway between two values, without overflow; never the upper one.
double midpoint(double below, double above);

// A float32 that divides the two values as well as the threshold does: the nearest to it, or the
// lower value itself; the threshold if there is none.
inline double narrowed(double threshold, double below, double above) {
  const auto rounded = static_cast<double>(static_cast<float>(threshold));
  if (rounded >= below && rounded < above) return rounded;
  return static_cast<double>(static_cast<float>(below)) == below ? below : threshold;
}

}  // namespace spinney::tree
