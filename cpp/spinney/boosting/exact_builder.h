// One tree of a boosted ensemble, with every cut of every column looked at. Each column's rows are
// kept in the order of its values, and the rows of a node are a piece of every column's order.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/boosting/round_builder.h"
#include "spinney/table/exact_matrix.h"

namespace spinney::boosting {

class ExactBuilder : public RoundBuilder {
 public:
  ExactBuilder(const table::ExactMatrix& matrix, TreeRules rules, int n_threads);

  void grow(std::uint64_t number, const common::Row* rows, std::size_t n_rows,
            const loss::Derivatives& of, const RowWeights& weights, bool constant_hessian,
            common::Watch& watch) override;
  void find_leaves(const table::RowMatrix& matrix, const common::Row* rows, std::size_t n,
                   common::NodeIndex* out) const override;

 private:
  struct Split {
    double gain = 0;
    std::uint32_t feature = 0;
    double threshold = 0;
    bool missing_left = false;
    std::vector<bool> left_categories;  // empty: a number
    Sums left;

    bool found() const { return gain > 0; }
  };
  struct Node {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t depth = 0;
    common::NodeIndex index = 0;
    std::uint64_t name = 1;
    Sums total;
    double n_rows = 0;  // whole weights count as repeated rows
    Bounds bounds;
    Split split;
    std::vector<std::uint32_t> path;
  };
  struct Part {
    Sums sums;
    double n_rows = 0;
  };

  void add_row(common::Row row, Part& to) const;
  double count_of(common::Row row) const;  // as Part::n_rows
  void search(Node& node);
  Split search_numbers(const Node& node, std::uint32_t feature) const;
  Split search_categories(const Node& node, std::uint32_t feature) const;
  void offer(const Node& node, const Part& left, std::int8_t sign, double l2, Split& best,
             bool& better) const;
  double score(const Sums& sums, double l2, const Bounds& bounds) const;
  bool goes_left(const Split& split, double value) const;
  void part(std::size_t which);
  bool may_split(const Node& node) const;

  const table::ExactMatrix& matrix_;
  int n_threads_;
  loss::Derivatives of_;
  std::vector<common::Row> rows_;                // by node
  std::vector<std::vector<common::Row>> order_;  // of each column of numbers, by node and value
  std::vector<std::uint8_t> goes_left_;          // [row]
  std::vector<Node> nodes_;
  std::vector<Split> questions_;  // by tree node
};

}  // namespace spinney::boosting
