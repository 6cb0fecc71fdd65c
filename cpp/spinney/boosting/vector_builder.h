// Grows one tree of a booster for several outputs: a leaf has a weight for each output, and the
// gain of a split is the sum of its gains for the outputs.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/boosting/growth.h"
#include "spinney/boosting/round_builder.h"
#include "spinney/common/large_array.h"
#include "spinney/table/binned_matrix.h"

namespace spinney::boosting {

struct VectorNode : GrowingNode<VectorNode> {
  using Histogram = std::vector<PackedSum>;

  std::vector<PackedSum> totals;      // [output], then row counts
  std::vector<Histogram> histograms;  // likewise
  BinSplit split;
};

class ListedRows {
 public:
  explicit ListedRows(const table::BinnedMatrix& matrix) : matrix_(matrix) {}

  void start(const TreeInput& input);
  void partition(VectorNode& parent);
  const common::Row* rows_of(const VectorNode& node) const { return rows_.data() + node.begin; }

 private:
  const table::BinnedMatrix& matrix_;
  std::vector<common::Row> rows_;
};

class VectorSearch {
 public:
  static constexpr bool concurrent = false;

  VectorSearch(const table::BinnedMatrix& matrix, std::size_t n_outputs, const TreeRules& rules,
               const ListedRows& rows, int n_threads);

  // Derivatives: [output][row].
  void start_tree(const TreeInput& input, const Workers& workers);
  const PackedScale& scale(std::size_t output) const { return scales_[output]; }

  void start(VectorNode& root);
  void inherit(VectorNode& parent);
  bool leaves_enough(const VectorNode&) const { return true; }  // all found splits do
  void search_children(VectorNode& parent);
  void release(VectorNode& parent) { parent.histograms = {}; }
  std::uint64_t work(const VectorNode& node) const {
    return node.n_rows() * matrix_.n_features() * n_outputs_;
  }

 private:
  std::vector<NodeToSplit> tasks_of(const VectorNode& node) const;
  void build_histograms(VectorNode& node);
  void search(VectorNode& node) const;

  const table::BinnedMatrix& matrix_;
  std::size_t n_outputs_;
  const TreeRules& rules_;
  const ListedRows& rows_;
  int n_threads_;
  ColumnSampler columns_;
  HistogramBuilder histograms_;
  RowWeights weights_;
  std::vector<PackedScale> scales_;                    // [output], then that of row counts
  std::vector<common::LargeArray<PackedSum>> packed_;  // likewise, [row of the matrix]
  std::vector<PackedSum> gathered_;
};

class VectorBuilder : public RoundBuilder {
 public:
  VectorBuilder(const table::BinnedMatrix& matrix, std::size_t n_outputs, TreeRules rules,
                int n_threads);

  void grow(const TreeInput& input, common::Watch& watch) override;
  void find_leaves(const table::RowMatrix& matrix, const common::Row* rows, std::size_t n,
                   common::NodeIndex* out) const override;
  void refine_leaves(const loss::Derivatives& derivatives) override;

  // A TreeWriter.
  void add_leaf(VectorNode& node);
  void write_split(const VectorNode& node);

 private:
  const table::BinnedMatrix& matrix_;
  std::size_t n_outputs_;
  int n_threads_;
  ListedRows rows_;
  VectorSearch search_;
  std::vector<BinSplit> splits_;  // by tree node
};

static_assert(RowPartition<ListedRows, VectorNode>);
static_assert(SplitSearch<VectorSearch, VectorNode>);

}  // namespace spinney::boosting
