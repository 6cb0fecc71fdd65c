// One tree of a boosted ensemble, grown on histograms. The smaller of two children is counted, the
// other is what is left of the parent.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "spinney/boosting/column_copies.h"
#include "spinney/boosting/round_builder.h"
#include "spinney/boosting/split.h"
#include "spinney/common/large_array.h"
#include "spinney/common/watch.h"
#include "spinney/tree/tree.h"

namespace spinney::boosting {

class TreeBuilder : public RoundBuilder {
 public:
  TreeBuilder(const table::BinnedMatrix& matrix, TreeRules rules, int n_threads);

  void grow(std::uint64_t number, const common::Row* rows, std::size_t n_rows,
            const loss::Derivatives& of, const RowWeights& weights, bool constant_hessian,
            common::Watch& watch) override;
  void find_leaves(const table::RowMatrix& matrix, const common::Row* rows, std::size_t n,
                   common::NodeIndex* out) const override;
  void allow_copies(std::size_t n_columns) override { copies_.allow(n_columns); }

 private:
  struct Node {
    std::size_t begin = 0;
    std::size_t end = 0;
    int buffer = 0;  // which of the two holds its rows
    std::uint32_t depth = 0;
    PackedSum* histogram = nullptr;
    PackedSum total = 0;
    Bounds bounds;
    BinSplit split;
    OpenSplit open;  // with other workers: what might be wrong about it
    common::NodeIndex index = 0;
    std::uint64_t name = 1;
    std::uint64_t n_all = 0;          // rows of all workers
    std::uint64_t n_counted = 0;      // … repeated by whole weights; without workers: of its own
    std::vector<std::uint32_t> path;  // columns asked about above, where interactions are limited
    Node* left = nullptr;             // children, once the node is to be prepared
    Node* right = nullptr;
    PackedSum* spare = nullptr;  // for the histogram of one of them
    bool children_ask = true;    // whether they need questions
    bool prepared = false;       // the children know their rows and questions
    bool was_parted = false;     // perhaps in vain
    bool is_leaf = false;        // of the tree as it stands
  };

  // A leaf that has a question, and what decides when its turn comes.
  struct Turn {
    double gain;
    std::uint32_t depth;
    common::NodeIndex index;
    Node* node;
  };

  PackedSum* take_histogram();
  void release(PackedSum*& histogram);
  void make_histograms(Node& parent);
  const common::Row* rows_of(const Node& node) const;
  PackedSum* packed(int buffer);
  RowSums sums_of(const Node& node);
  bool may_split(const Node& node) const;
  void search(Node& node);
  NodeToSplit task_of(const Node& node);
  Node& add_node();
  void add_children(Node& parent);
  void part_rows(Node& parent);
  bool has_enough(const Node& parent) const;
  bool counts_by_column(std::size_t n_rows) const;
  void inherit(Node& parent);
  void prepare(Node& parent);
  void finish(Node& parent);
  void add_to_tree(Node& node);
  void commit(Node& parent);
  void commit_prepared();
  void search_children(Node& parent);
  bool later(const Turn& a, const Turn& b) const;
  void push(std::vector<Turn>& turns, const Turn& turn) const;
  Node* pop(std::vector<Turn>& turns) const;
  Node* take();
  void grow_by_gain(common::Watch& watch);
  void grow_by_level(common::Watch& watch);
  BinSplit ask_level(std::size_t depth, common::Watch& watch, std::vector<Node*>& asked);
  std::uint64_t n_rows_of(const Node& node) const;
  std::uint64_t count_own_rows(const Node& node) const;
  // With other workers, in shared_growth.cpp.
  void start_together(Node& root);
  void part_together(const std::vector<Node*>& parents);
  void take_back(Node& parent);
  void search_together(const std::vector<Node*>& nodes);
  void change_turn(const Node& node);
  std::vector<Node*> take_several();
  void recover_rows(const Node& node);
  void grow_by_gain_together(common::Watch& watch);
  void grow_by_level_together(common::Watch& watch);
  std::size_t divide(const Node& node, const BinSplit& split);
  PackedSum pack(const loss::Derivatives& of, const common::Row* rows, std::size_t n,
                 bool constant_hessian);
  // Matrices of workers only, who divide one node after another: copies of columns are not shared.
  // Whether children have their rows where their parent had them, and sums stay with their rows:
  // slower where rows are many, but it takes half of the memory.
  bool stays_in_place() const { return matrix_.only_by_row(); }

  const table::BinnedMatrix& matrix_;
  int n_threads_;
  HistogramBuilder histograms_;
  PackedScale scale_;
  bool all_rows_ = false;  // the root's rows are 0 … n-1, unwritten
  std::size_t all_rows_n_ = 0;
  std::size_t level_limit_ = 0;              // of an oblivious tree
  bool without_histograms_ = false;          // of an oblivious tree of few rows
  common::LargeArray<common::Row> rows_[2];  // the second is not used where rows stay in place
  ColumnCopies copies_;                      // … but these
  common::LargeArray<PackedSum> packed_[2];  // the second is not used where memory was lent
  bool moves_sums_ = false;  // along with the rows; else they stay at their row's place
  const PackedSum* sums_of_rows_ = nullptr;
  common::LargeArray<std::uint8_t> goes_left_;
  std::vector<std::vector<PackedSum>> memory_;  // of histograms
  std::vector<PackedSum*> free_;                // those in it that no node has
  std::deque<Node> nodes_;
  std::size_t n_leaves_ = 0;
  std::vector<Turn> waiting_;        // heap of the leaves that may be parted
  std::vector<Turn> unprepared_;     // … of those whose children nobody has begun with
  std::size_t n_begun_ = 0;          // the others of them
  std::vector<BinSplit> questions_;  // by tree node
  std::vector<std::int64_t> message_;
};

}  // namespace spinney::boosting
