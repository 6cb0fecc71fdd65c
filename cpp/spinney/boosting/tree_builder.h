// Grows one tree of a booster on histograms.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/boosting/growth.h"
#include "spinney/boosting/histogram_search.h"
#include "spinney/boosting/node_rows.h"
#include "spinney/boosting/round_builder.h"

namespace spinney::boosting {

template <RowPartition<HistogramNode> Rows>
class TreeBuilder : public RoundBuilder {
 public:
  using Node = HistogramNode;

  TreeBuilder(const table::BinnedMatrix& matrix, TreeRules rules, int n_threads);

  void grow(const TreeInput& input, common::Watch& watch) override;
  void find_leaves(const table::RowMatrix& matrix, const common::Row* rows, std::size_t n,
                   common::NodeIndex* out) const override;
  void allow_copies(std::size_t n_columns) override { rows_.allow_copies(n_columns); }

  // A TreeWriter.
  void add_leaf(Node& node);
  void write_split(const Node& node);

 private:
  template <class Tree, class Expander>
  void grow_from(Node& root, Tree& tree, Expander& expander, common::Watch& watch);

  const table::BinnedMatrix& matrix_;
  int n_threads_;
  Rows rows_;
  HistogramSearch<Rows> search_;
  std::vector<BinSplit> splits_;  // by tree node
};

extern template class TreeBuilder<MovingRows>;
extern template class TreeBuilder<RowsInPlace>;

}  // namespace spinney::boosting
