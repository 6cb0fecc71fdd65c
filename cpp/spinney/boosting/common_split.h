// One split for several nodes: all nodes of a level of an oblivious tree, or all outputs of a tree
// with vector leaves. Its gain is the sum of the gains of the nodes.
#pragma once

#include <span>

#include "spinney/boosting/split.h"

namespace spinney::boosting {

// Every node has a scale, and a histogram or its rows; `allowed` of the first node applies to all.
// A node with a side that is too light does not contribute. The split's `left` is not set; left_sum
// computes it for each node. counts: null for nodes of a level. For outputs of the same rows, it
// has numbers of rows in place of Hessians, and both sides have enough rows. Categories are ordered
// by the sums over all nodes of a level, or by each output in turn.
BinSplit find_common_split(const table::BinnedMatrix& matrix, std::span<const NodeToSplit> nodes,
                           const NodeToSplit* counts, const SplitRules& rules, int n_threads);

// Sum over the node's rows that go left.
PackedSum left_sum(const table::BinnedMatrix& matrix, const NodeToSplit& node,
                   const BinSplit& split);

// The gain of a node with this sum of the left side, 0 if the split is not allowed.
double gain_of(const NodeToSplit& node, PackedSum left, std::int8_t sign, double l2,
               const SplitRules& rules);

}  // namespace spinney::boosting
