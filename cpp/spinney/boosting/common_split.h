// One question for several nodes at once: of an oblivious tree, all nodes of a level ask the same;
// of a tree for several outputs, all outputs do. What it is worth is the sum of what it is worth to
// each of them.
#pragma once

#include <span>

#include "spinney/boosting/split.h"

namespace spinney::boosting {

// Every node has a scale, and a histogram or its rows; `allowed` of the first counts for all. A
// node whose sides would be too light takes no part. The split's own sums are not set: left_sum has
// them for each node. Categories are ordered by the sums of all nodes or, if these are different
// outputs of the same rows, by those of each in turn. counts: of these rows, as second derivatives;
// both sides of a question have enough of them.
BinSplit find_common_split(const table::BinnedMatrix& matrix, std::span<const NodeToSplit> nodes,
                           const NodeToSplit* counts, const SplitRules& rules, int n_threads);

// Sums of the rows of a node that a split sends left.
PackedSum left_sum(const table::BinnedMatrix& matrix, const NodeToSplit& node,
                   const BinSplit& split);

// What a split is worth to a node with these sums on its left side, 0 if it is not allowed.
double gain_of(const NodeToSplit& node, PackedSum left, std::int8_t sign, double l2,
               const SplitRules& rules);

}  // namespace spinney::boosting
