// Grows sequences of shallow classification trees on the same rows with changing weights
// (AdaBoost), level by level. Weights are integers, so that sums are exact in any order: a child's
// sums are the parent's minus the sibling's, and the sums of the leaves give a tree's error without
// a pass over the rows.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/common/watch.h"
#include "spinney/criterion/criterion.h"
#include "spinney/table/table.h"
#include "spinney/tree/code_cut.h"
#include "spinney/tree/counted_table.h"
#include "spinney/tree/grower.h"

namespace spinney::tree {

class CountedGrower {
 public:
  // Whether this grower supports the table and the options: Gini impurity, few levels, all columns,
  // one output, and no categorical columns if there are more than two classes.
  static bool supports(const table::Table& table, const criterion::Targets& targets,
                       const GrowOptions& options);

  // The weights sum to about 1; rows of weight 0 are excluded.
  CountedGrower(const table::Table& table, const criterion::Targets& targets,
                const GrowOptions& options, double* weights);

  void grow(std::uint64_t seed, common::Watch& watch);

  // The last tree, and the class weights of its nodes: [node * n_classes + class].
  const forest::Tree& tree() const { return tree_; }
  const std::vector<double>& sums() const { return tree_sums_; }

  // Multiplies the weight of each row by factors[leaf * n_classes + class]; the minimum is `least`.
  void reweigh(const std::vector<double>& factors, double least);

 private:
  static constexpr std::size_t no_node = static_cast<std::size_t>(-1);

  struct Segment {
    common::Row begin;
    common::Row end;
  };

  struct Node {
    std::int64_t depth = 0;
    std::uint64_t key = 0;  // identifies the node by its path
    std::size_t left = no_node;
    std::size_t right = no_node;
    std::size_t smaller = no_node;  // the child with fewer rows
    std::size_t slot = 0;           // of its sums in a column's kept sums
    std::size_t in_tree = 0;
    common::Row n_rows = 0;
    bool terminal = false;
    double impurity = 0;
    std::vector<std::int64_t> sums;  // by class
    std::vector<double> stat;        // as in Criterion: weight, class weights
    std::vector<Segment> segments;   // its rows in each block of rows_
    criterion::Split split;
    std::vector<common::Code> present;  // categorical split: categories in the node

    criterion::NodeView view() const { return {n_rows, stat.data()}; }
  };

  // The best split of one column in one node.
  struct Candidate {
    double score;
    common::Code left_code;
    common::Code above;  // the next code in the node
    bool missing_left;
    bool only_missing_right;
    std::vector<common::Code> left_codes;  // categorical
    std::vector<common::Code> present;
    std::vector<std::int64_t> left_sums;  // only of candidates that may win
  };

  struct Scratch {
    std::vector<std::int64_t> sums;
    std::vector<std::int64_t> ordered;
    std::vector<std::uint32_t> counts;
    std::vector<std::uint32_t> ordered_counts;
    std::vector<double> cuts;
    std::vector<double> keys;
    std::vector<double> best;  // best score by node, of this thread
    std::vector<common::Row> rows;
    std::vector<std::int64_t> classes;
  };

  std::size_t n_columns() const { return counted_.columns.size(); }
  bool counts_rows() const { return options_.min_samples_leaf > 1; }
  int threads_for(double nanoseconds) const;

  void add_root(std::uint64_t seed);
  void complete(Node& node) const;
  bool is_terminal(const Node& node) const;
  void find(const std::vector<std::size_t>& parents);
  void find_in_column(std::size_t f, const std::vector<std::size_t>& parents, Scratch& scratch);
  void count(const CountedColumn& column, std::size_t node, std::int64_t* sums) const;
  void count_rows(const CountedColumn& column, std::size_t node,
                  std::vector<std::uint32_t>& counts) const;
  void scan_node(std::size_t f, std::size_t node, const std::int64_t* sums, Scratch& scratch);
  CodeCutTask cut_task(const Node& node) const;
  void scan_numeric(const CountedColumn& column, const Node& node, const std::int64_t* sums,
                    Scratch& scratch, Candidate& out) const;
  void scan_categorical(const CountedColumn& column, const Node& node, const std::int64_t* sums,
                        Scratch& scratch, Candidate& out) const;
  void sum_left(const CountedColumn& column, const std::int64_t* sums, Candidate& candidate) const;
  bool choose(std::size_t node);
  void partition(const std::vector<std::size_t>& parents);
  common::Row partition_segment(const Node& node, Segment segment, common::Row* buffer);
  void set_missing_direction(Node& node);
  void write(std::size_t node, common::NodeIndex parent, bool is_left);
  void write_split(const Node& node, std::size_t at);

  const table::Table& table_;
  criterion::Targets targets_;
  const GrowOptions& options_;
  double* weights_;
  CountedTable counted_;
  std::unique_ptr<criterion::Criterion> criterion_;
  std::size_t n_classes_;
  std::vector<std::int64_t> units_;    // by row: weight as an integer
  std::vector<std::int64_t> classes_;  // class weights of the root
  std::vector<common::Row> rows_;      // by block, and by node in each block
  std::vector<std::uint8_t> node_of_;  // by row, for the nodes of the last level
  std::vector<std::size_t> order_;     // columns by descending work
  // By column: sums of the level's nodes, [slot * n_cells + cell]; empty if not kept.
  std::vector<std::vector<std::int64_t>> kept_;
  std::vector<Scratch> scratches_;
  std::vector<Node> nodes_;
  std::vector<Candidate> candidates_;  // [node of the level * n_columns + column]
  std::vector<std::size_t> open_;      // nodes of the level that are not terminal
  double total_weight_ = 0;
  forest::Tree tree_;
  std::vector<double> tree_sums_;
};

}  // namespace spinney::tree
