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
  std::vector<double> left_stat;
  std::vector<double> right_stat;
};

class Search {
 public:
  virtual ~Search() = default;

  // The root's rows, in ascending order.
  virtual std::vector<Row>& rows() = 0;
  // Fills the root's segments, if the search works on segments.
  virtual void open(Node& root) = 0;
  // Looks for the node's best split; may drop columns that it finds constant from node.segments.
  virtual Split find(Node& node, Worker& worker, int n_threads) = 0;
  // Whether the split needs two passes over all columns: if a child is terminal its part can be
  // left in disorder. Divides the node's rows (stably) so that the left ones come first and fills
  // the children's segments; children have begin, end and terminal set before divide_columns.
  virtual void divide_rows(const Node& node, const Split& split, Worker& worker) = 0;
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
