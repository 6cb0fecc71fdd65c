// The interface of split searches.
#pragma once

#include <algorithm>
#include <array>
#include <memory>

#include "spinney/tree/feature_draw.h"
#include "spinney/tree/grower.h"
#include "spinney/tree/node.h"
#include "spinney/tree/prepared_table.h"

namespace spinney::tree {

// A split with a random threshold or random categories.
struct RandomSplit {
  bool valid = false;
  bool categorical = false;
  bool has_missing = false;  // in the node
  bool missing_left = false;
  double threshold = 0;
  std::vector<common::Code> left_codes;  // ascending
  std::vector<common::Code> present;     // scratch

  bool has(common::Code code) const {
    return std::binary_search(left_codes.begin(), left_codes.end(), code);
  }
};

// Buffers of one thread.
struct Worker {
  criterion::NodeScratch node_scratch;
  std::vector<criterion::ScanScratch> scans;  // one per thread that scans columns
  std::vector<common::Row> rows;
  std::vector<table::Entry> entries;
  std::vector<table::Entry> swap;
  std::vector<std::int32_t> features;
  FeatureDraw::Swaps swaps;
  std::vector<criterion::LaneKeys> lanes;
  std::vector<std::uint8_t> cells;
  std::array<std::vector<common::Code>, criterion::n_lanes> codes;  // by lane
  std::array<std::vector<double>, criterion::n_lanes> columns;      // values by lane
  criterion::RowTargets targets;
  std::array<RandomSplit, criterion::n_lanes> random_splits;
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
  // Sets the root's segments if the search uses segments.
  virtual void open(Node& root) = 0;
  // Stores the node's best split in `best`, which is empty before the call. May remove constant
  // columns from node.segments.
  virtual void find(Node& node, Worker& worker, int n_threads, criterion::Split& best) = 0;
  // Partitions the node's rows stably, left before right; completes the split if necessary.
  virtual void partition_rows(const Node& node, criterion::Split& split, Worker& worker) = 0;
  // stat = the sums over the node's rows.
  virtual void sum(const Node& node, double* stat) const = 0;
  // Partitions the node's segments between its children. A terminal child gets no segments.
  virtual void partition_columns(const Node& node, Node& left, Node& right, Worker& worker,
                                 int n_threads) = 0;
  // The threshold that the tree stores.
  virtual double threshold(const criterion::Split& split) const = 0;
  // A rough estimate of the nanoseconds to search and partition the node.
  virtual double cost(const Node& node) const = 0;
};

struct SearchInputs {
  const table::Table& table;
  const criterion::Targets& targets;
  const GrowOptions& options;
  const table::EntryLayout& layout;
  const criterion::Criterion& criterion;
  std::vector<common::Row> rows;  // rows of positive weight

  // The features of the tree.
  std::vector<std::int32_t> features() const {
    std::vector<std::int32_t> all = options.features;
    for (std::size_t f = 0; options.features.empty() && f < table.n_features(); ++f) {
      all.push_back(static_cast<std::int32_t>(f));
    }
    return all;
  }
  // The number of features that a node draws: max_features.
  std::size_t n_features_drawn() const {
    const std::size_t n = options.features.empty() ? table.n_features() : options.features.size();
    const auto max_features = static_cast<std::size_t>(options.max_features);
    return max_features == 0 ? n : std::min(n, max_features);
  }
};

// coded: the columns if they are already coded; not modified.
std::unique_ptr<Search> make_presorted_search(
    SearchInputs inputs, const std::vector<table::CodedColumn>* coded = nullptr);
std::unique_ptr<Search> make_sampled_search(SearchInputs inputs, const PreparedTable& prepared);
std::unique_ptr<Search> make_random_search(SearchInputs inputs, const PreparedTable& prepared);

// The midpoint of two values without overflow; never the upper value.
double midpoint(double below, double above);

// A float32 between the two values: the nearest to the threshold, or the lower value. The threshold
// itself if there is none.
inline double narrowed(double threshold, double below, double above) {
  const auto rounded = static_cast<double>(static_cast<float>(threshold));
  if (rounded >= below && rounded < above) return rounded;
  return static_cast<double>(static_cast<float>(below)) == below ? below : threshold;
}

}  // namespace spinney::tree
