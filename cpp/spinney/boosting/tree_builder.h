// One tree of a boosted ensemble, grown on histograms. The smaller of two children is counted, the
// other is what is left of the parent.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/boosting/round_builder.h"
#include "spinney/boosting/split.h"
#include "spinney/common/large_array.h"
#include "spinney/common/watch.h"
#include "spinney/tree/tree.h"

namespace spinney {

class TreeBuilder : public RoundBuilder {
 public:
  TreeBuilder(const BinnedMatrix& matrix, TreeRules rules, int n_threads);

  void grow(std::uint64_t number, const Row* rows, std::size_t n_rows, const Derivatives& of,
            const RowWeights& weights, bool constant_hessian, Watch& watch) override;
  void find_leaves(const RowMatrix& matrix, const Row* rows, std::size_t n,
                   NodeIndex* out) const override;

 private:
  struct Node {
    std::size_t begin = 0;
    std::size_t end = 0;
    int buffer = 0;  // which of the two holds its rows
    std::uint32_t depth = 0;
    std::int32_t slot = -1;  // of its histogram
    PackedSum total = 0;
    Bounds bounds;
    BinSplit split;
    NodeIndex index = 0;
    std::vector<std::uint32_t> path;  // columns asked about above, where interactions are limited
    std::vector<Node> children;       // two, once they have been prepared
    std::int32_t spare = -1;          // slot for the histogram of one of them
  };

  std::int32_t take_slot();
  void release(std::int32_t& slot);
  void make_histograms(Node& parent);
  PackedSum* histogram(std::int32_t slot) { return slots_[static_cast<std::size_t>(slot)].data(); }
  const Row* rows_of(const Node& node) const;
  bool may_split(const Node& node) const;
  void search(Node& node);
  NodeToSplit task_of(const Node& node);
  bool divide(Node& parent);
  void prepare(Node& parent, bool searches);
  void prepare_some(std::size_t next);
  void commit(std::size_t which);
  void search_children(Node& parent);
  void grow_by_gain(Watch& watch);
  void grow_by_level(Watch& watch);
  std::uint64_t count_rows(const Node& node) const;
  std::size_t divide_rows(const Node& node, const BinSplit& split);

  const BinnedMatrix& matrix_;
  int n_threads_;
  HistogramBuilder histograms_;
  PackedScale scale_;
  bool all_rows_ = false;  // the root's rows are 0 … n-1, unwritten
  std::size_t all_rows_n_ = 0;
  std::size_t level_limit_ = 0;  // of an oblivious tree
  LargeArray<Row> rows_[2];
  LargeArray<PackedSum> packed_[2];
  LargeArray<std::uint8_t> goes_left_;
  std::vector<std::vector<PackedSum>> slots_;
  std::vector<std::int32_t> free_slots_;
  std::vector<Node> nodes_;          // leaves under way
  std::vector<BinSplit> questions_;  // by tree node
};

}  // namespace spinney
