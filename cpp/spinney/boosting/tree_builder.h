// One tree of a boosted ensemble, grown on histograms. The smaller of two children is counted, the
// other is what is left of the parent.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/boosting/split.h"
#include "spinney/common/large_array.h"
#include "spinney/common/watch.h"
#include "spinney/tree/tree.h"

namespace spinney {

enum class Growth : std::uint8_t {
  best_first,  // the leaf that gains most is parted next
  level_wise,  // all leaves of a level before those of the next
  oblivious,   // the same question for all leaves of a level
};

struct TreeRules {
  SplitRules split;
  Growth growth = Growth::best_first;
  std::size_t max_leaves = 31;
  std::size_t max_depth = 1000;
  // Shares of the columns that a tree, a level and a node may use; each draws from the one before.
  double tree_columns = 1;
  double level_columns = 1;
  double node_columns = 1;
  // Sets of columns that may meet on a path; empty: any.
  std::vector<std::vector<std::uint32_t>> interactions;
  std::uint64_t seed = 0;
};

// Where the rows of a leaf lie among the builder's rows.
struct LeafRows {
  NodeIndex node = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
  const Row* rows = nullptr;
  Bounds bounds;
};

class TreeBuilder {
 public:
  TreeBuilder(const BinnedMatrix& matrix, TreeRules rules, int n_threads);

  // Grows the tree with this number from the given rows (null: all of them) and their gradients.
  // A node's value is its weight, its weight the sum of second derivatives, its impurity such that
  // the weighted decrease is the gain.
  void grow(std::uint64_t number, const Row* rows, std::size_t n_rows, const Derivatives& of,
            const RowWeights& weights, bool constant_hessian, Watch& watch);

  Tree& tree() { return tree_; }
  const std::vector<LeafRows>& leaves() const { return leaves_; }
  // Leaf weights from the derivatives themselves instead of the packed sums.
  void refine_leaves(const Derivatives& of);
  // out[i] = leaf of rows[i], found by codes.
  void find_leaves(const BinnedMatrix& matrix, const Row* rows, std::size_t n,
                   NodeIndex* out) const;

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
  };

  std::int32_t take_slot();
  void release(std::int32_t& slot);
  void make_histograms(std::int32_t& slot, Node& left, Node& right);
  PackedSum* histogram(std::int32_t slot) { return slots_[static_cast<std::size_t>(slot)].data(); }
  const Row* rows_of(const Node& node) const;
  bool may_split(const Node& node) const;
  void search(Node& node);
  NodeToSplit task_of(const Node& node);
  bool part(std::size_t which);
  void search_children(Node& parent, Node& left, Node& right);
  void grow_by_gain(Watch& watch);
  void grow_by_level(Watch& watch);
  std::uint64_t count_rows(const Node& node) const;
  std::size_t divide_rows(const Node& node, const BinSplit& split);
  void write_question(const Node& node);
  template <class GoesLeft>
  void write_categories(std::size_t at, std::size_t n, const GoesLeft& goes_left);
  void describe(const Node& node);
  bool limits_columns() const;
  const std::uint8_t* allowed_columns(const Node& node);
  void draw(std::vector<std::uint8_t>& columns, double share, std::uint64_t purpose_index) const;

  const BinnedMatrix& matrix_;
  TreeRules rules_;
  int n_threads_;
  HistogramBuilder histograms_;
  std::uint64_t number_ = 0;
  PackedScale scale_;
  RowWeights weights_;
  bool all_rows_ = false;  // the root's rows are 0 … n-1, unwritten
  std::size_t all_rows_n_ = 0;
  std::size_t level_limit_ = 0;  // of an oblivious tree
  LargeArray<Row> rows_[2];
  LargeArray<PackedSum> packed_[2];
  LargeArray<std::uint8_t> goes_left_;
  std::vector<std::vector<PackedSum>> slots_;
  std::vector<std::int32_t> free_slots_;
  std::vector<Node> nodes_;  // leaves under way
  std::vector<std::uint8_t> tree_columns_;
  std::vector<std::uint8_t> node_columns_;
  std::vector<LeafRows> leaves_;
  std::vector<BinSplit> questions_;  // by tree node
  Tree tree_;
};

}  // namespace spinney
