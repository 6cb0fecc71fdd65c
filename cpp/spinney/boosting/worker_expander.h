// Makes the children of leaves when several workers have the rows. Every worker partitions and
// counts its own rows; sums over all workers decide, so all workers make the same splits. One
// all-reduce serves all nodes of a call.
#pragma once

#include <span>
#include <vector>

#include "spinney/boosting/histogram_search.h"
#include "spinney/common/exchange.h"

namespace spinney::boosting {

template <RowPartition<HistogramNode> Rows>
class WorkerExpander {
 public:
  using Node = HistogramNode;
  static constexpr bool concurrent = false;

  WorkerExpander(const table::BinnedMatrix& matrix, Rows& rows, HistogramSearch<Rows>& search,
                 common::Exchange& exchange, int n_threads)
      : matrix_(matrix), rows_(rows), search_(search), exchange_(exchange), n_threads_(n_threads) {}

  void start(Node& root);
  void expand(std::span<Node* const> nodes);
  std::uint64_t work(const Node& node) const { return search_.work(node); }

 private:
  void write_message(std::span<Node* const> nodes);
  void read_message(std::span<Node* const> nodes);
  void take_histograms(Node& parent, const std::int64_t* histogram);
  void return_histogram(Node& parent);
  void find_split(Node& node);

  const table::BinnedMatrix& matrix_;
  Rows& rows_;
  HistogramSearch<Rows>& search_;
  common::Exchange& exchange_;
  int n_threads_;
  std::vector<std::int64_t> message_;
};

extern template class WorkerExpander<MovingRows>;
extern template class WorkerExpander<RowsInPlace>;
static_assert(NodeExpander<WorkerExpander<RowsInPlace>, HistogramNode>);

}  // namespace spinney::boosting
