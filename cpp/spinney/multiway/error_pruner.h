// Error-based pruning, as in C4.5: a subtree gives way to a leaf, or to its largest branch, where
// that is not expected to make more mistakes.
#pragma once

#include "spinney/common/watch.h"
#include "spinney/multiway/multiway_tree.h"
#include "spinney/multiway/quinlan_rows.h"

namespace spinney::multiway {

// How many mistakes are to be expected beyond the e that were made among n rows: up to the limit
// that their number exceeds with probability `confidence`.
double extra_errors(double n, double e, double confidence);

void prune_by_errors(const QuinlanRows& rows, double confidence, bool raise, common::Watch& watch,
                     MultiwayTree& tree);

}  // namespace spinney::multiway
