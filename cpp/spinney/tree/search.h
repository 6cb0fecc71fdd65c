// How a node's best split is found and its rows are divided.
#pragma once

#include <memory>

#include "spinney/tree/grower.h"
#include "spinney/tree/node.h"

namespace spinney {

// What one thread needs while it works on nodes.
struct Worker {
  NodeScratch node_scratch;
  std::vector<ScanScratch> scans;  // one per thread that scans for this worker
  std::vector<Row> rows;
  std::vector<Entry> entries;
  std::vector<Entry> swap;
  std::vector<std::int32_t> features;
  std::vector<double> values;
  std::vector<double> left_stat;
  std::vector<double> right_stat;
  Split split;
  Split challenger;
};

class Search {
 public:
  virtual ~Search() = default;

  // The root's rows, in ascending order.
  virtual std::vector<Row>& rows() = 0;
  // Fills the root's segments, if the search works on segments.
  virtual void open(Node& root) = 0;
  // Looks for the node's best split and leaves it in `best`, which comes empty; may drop columns
  // that it finds constant from node.segments.
  virtual void find(Node& node, Worker& worker, int n_threads, Split& best) = 0;
  // Divides the node's rows, stably, so that the left ones come first.
  virtual void divide_rows(const Node& node, const Split& split, Worker& worker) = 0;
  // Divides the node's segments between its children, which know their rows and whether they are
  // terminal; a terminal child gets none.
  virtual void divide_columns(const Node& node, Node& left, Node& right, Worker& worker,
                              int n_threads) = 0;
  // The threshold that becomes part of the tree.
  virtual double threshold(const Split& split) const = 0;
  // Nanoseconds that find and divide may take on a node of this size, roughly.
  virtual double cost(const Node& node) const = 0;
};

struct SearchInputs {
  const Table& table;
  const Targets& targets;
  const GrowOptions& options;
  const EntryLayout& layout;
  const Criterion& criterion;
  std::vector<Row> rows;  // rows of positive weight
};

std::unique_ptr<Search> make_presorted_search(SearchInputs inputs);
std::unique_ptr<Search> make_sampled_search(SearchInputs inputs);

// Halfway between two values, without overflow; never the upper one.
double midpoint(double below, double above);

}  // namespace spinney
