// One tree for several outputs: a leaf has a weight for each, a question is worth the sum of what
// it is worth to each.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/boosting/round_builder.h"
#include "spinney/common/large_array.h"
#include "spinney/table/binned_matrix.h"

namespace spinney::boosting {

class VectorBuilder : public RoundBuilder {
 public:
  VectorBuilder(const table::BinnedMatrix& matrix, std::size_t n_outputs, TreeRules rules,
                int n_threads);

  // Derivatives: [output][row].
  void grow(std::uint64_t number, const common::Row* rows, std::size_t n_rows,
            const loss::Derivatives& of, const RowWeights& weights, bool constant_hessian,
            common::Watch& watch) override;
  void find_leaves(const table::RowMatrix& matrix, const common::Row* rows, std::size_t n,
                   common::NodeIndex* out) const override;
  void refine_leaves(const loss::Derivatives& of) override;

 private:
  using Histogram = std::vector<PackedSum>;
  struct Node {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t depth = 0;
    common::NodeIndex index = 0;
    std::uint64_t name = 1;
    std::vector<PackedSum> totals;      // [output], then of rows
    std::vector<Histogram> histograms;  // likewise
    BinSplit split;
    std::vector<std::uint32_t> path;
  };

  std::vector<NodeToSplit> tasks_of(const Node& node) const;
  void count(Node& node);
  void search(Node& node);
  void part(std::size_t which);
  void describe_all(const Node& node);

  const table::BinnedMatrix& matrix_;
  std::size_t n_outputs_;
  int n_threads_;
  HistogramBuilder histograms_;
  std::vector<PackedScale> scales_;                    // [output], then of rows
  std::vector<common::LargeArray<PackedSum>> packed_;  // likewise, [row of the matrix]
  std::vector<PackedSum> gathered_;
  std::vector<common::Row> rows_;  // by node
  std::vector<Node> nodes_;
  std::vector<BinSplit> questions_;  // by tree node
};

}  // namespace spinney::boosting
