// Grows one tree of a booster on all cuts of all columns. Each numeric column keeps the rows in the
// order of its values; the rows of a node are contiguous in the order of every column.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/boosting/growth.h"
#include "spinney/boosting/round_builder.h"
#include "spinney/table/exact_matrix.h"

namespace spinney::boosting {

struct ExactSplit {
  double gain = 0;
  std::uint32_t feature = 0;
  double threshold = 0;
  bool missing_left = false;
  std::vector<bool> left_categories;  // by category, missing last; empty: a numeric split
  Sums left;

  bool found() const { return gain > 0; }
  bool goes_left(double value) const;
};

struct ExactNode : GrowingNode<ExactNode> {
  Sums total;
  double n_counted = 0;  // rows, repeated by integer weights
  Bounds bounds;
  ExactSplit split;
};

// The rows of all nodes, and the orders of all columns.
class SortedRows {
 public:
  SortedRows(const table::ExactMatrix& matrix, int n_threads);

  void start(const TreeInput& input);
  void partition(ExactNode& parent);

  const common::Row* rows_of(const ExactNode& node) const { return rows_.data() + node.begin; }
  // The rows of a node by ascending value of a numeric column, missing values last.
  const common::Row* ordered_rows(const ExactNode& node, std::uint32_t feature) const {
    return order_[feature].data() + node.begin;
  }

 private:
  const table::ExactMatrix& matrix_;
  int n_threads_;
  std::vector<common::Row> rows_;
  std::vector<std::vector<common::Row>> order_;  // of each numeric column
  std::vector<std::uint8_t> flags_;              // [row]
};

class ExactSearch {
 public:
  static constexpr bool concurrent = false;

  ExactSearch(const table::ExactMatrix& matrix, const TreeRules& rules, const SortedRows& rows,
              int n_threads);

  void start_tree(const TreeInput& input);
  const Sums& largest() const { return largest_; }

  void start(ExactNode& root);
  void inherit(ExactNode& parent);
  bool leaves_enough(const ExactNode&) const { return true; }  // all found splits do
  void search_children(ExactNode& parent);
  void release(ExactNode&) {}
  std::uint64_t work(const ExactNode& node) const {
    return node.n_rows() * matrix_.n_features() * 10;
  }

 private:
  struct Part {
    Sums sums;
    double n_rows = 0;
  };

  void add_row(common::Row row, Part& to) const;
  double count_of(common::Row row) const;
  void search(ExactNode& node) const;
  ExactSplit search_numbers(const ExactNode& node, std::uint32_t feature) const;
  ExactSplit search_categories(const ExactNode& node, std::uint32_t feature) const;
  bool offer(const ExactNode& node, const Part& left, std::int8_t sign, double l2,
             ExactSplit& best) const;
  double score(const Sums& sums, double l2, const Bounds& bounds) const;

  const table::ExactMatrix& matrix_;
  const TreeRules& rules_;
  const SortedRows& rows_;
  int n_threads_;
  ColumnSampler columns_;
  loss::Derivatives derivatives_;
  RowWeights weights_;
  Sums largest_;  // derivatives of a row
};

class ExactBuilder : public RoundBuilder {
 public:
  ExactBuilder(const table::ExactMatrix& matrix, TreeRules rules, int n_threads);

  void grow(const TreeInput& input, common::Watch& watch) override;
  void find_leaves(const table::RowMatrix& matrix, const common::Row* rows, std::size_t n,
                   common::NodeIndex* out) const override;

  // A TreeWriter.
  void add_leaf(ExactNode& node);
  void write_split(const ExactNode& node);

 private:
  const table::ExactMatrix& matrix_;
  SortedRows rows_;
  ExactSearch search_;
  std::vector<ExactSplit> splits_;  // by tree node
};

static_assert(RowPartition<SortedRows, ExactNode>);
static_assert(SplitSearch<ExactSearch, ExactNode>);

}  // namespace spinney::boosting
