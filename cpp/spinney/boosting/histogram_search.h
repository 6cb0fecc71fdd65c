// Finds the splits of nodes from their histograms: a SplitSearch and a LevelSearch. The histogram
// of the larger child is the parent's minus that of the smaller one.
#pragma once

#include <span>
#include <vector>

#include "spinney/boosting/column_sampler.h"
#include "spinney/boosting/histogram_node.h"
#include "spinney/boosting/histogram_pool.h"
#include "spinney/boosting/node_rows.h"
#include "spinney/boosting/oblivious_frontier.h"

namespace spinney::boosting {

template <RowPartition<HistogramNode> Rows>
class HistogramSearch {
 public:
  using Node = HistogramNode;
  static constexpr bool concurrent = true;

  HistogramSearch(const table::BinnedMatrix& matrix, const TreeRules& rules, const Rows& rows,
                  int n_threads);

  void start_tree(const TreeInput& input);

  void start(Node& root);
  void inherit(Node& parent);
  bool leaves_enough(const Node& parent) const;
  void search_children(Node& parent);
  void release(Node& parent);
  std::uint64_t work(const Node& node) const { return node.n_rows() * matrix_.n_features(); }

  std::vector<Node*> split_level(const std::vector<Node*>& leaves, std::size_t depth);

  // Parts that WorkerExpander shares.
  bool may_split(const Node& node) const;
  NodeToSplit task_of(const Node& node) const;
  std::vector<std::uint8_t> allowed_columns(const Node& node) const;
  void inherit_sums(Node& parent) const;
  std::uint64_t count_own_rows(const Node& node) const;
  bool has_enough(const Node& parent) const;
  void build_histogram(const Node& node, PackedSum* out);
  bool by_level() const { return rules_.growth == Growth::oblivious; }
  const TreeRules& rules() const { return rules_; }
  HistogramPool& pool() { return pool_; }

 private:
  void search(Node& node) const;
  void make_histograms(Node& parent);
  bool sums_by_column(std::size_t n_rows) const;

  const table::BinnedMatrix& matrix_;
  const TreeRules& rules_;
  const Rows& rows_;
  int n_threads_;
  HistogramBuilder histograms_;
  HistogramPool pool_;
  ColumnSampler columns_;
  RowWeights weights_;
  bool without_histograms_ = false;  // an oblivious tree of few rows
};

extern template class HistogramSearch<MovingRows>;
extern template class HistogramSearch<RowsInPlace>;
static_assert(SplitSearch<HistogramSearch<MovingRows>, HistogramNode>);
static_assert(LevelSearch<HistogramSearch<MovingRows>, HistogramNode>);

}  // namespace spinney::boosting
