// Error-based pruning, as in C4.5: replaces a subtree by a leaf or by its largest branch if the
// expected errors do not increase.
#pragma once

#include "spinney/common/watch.h"
#include "spinney/multiway/multiway_tree.h"
#include "spinney/multiway/quinlan_rows.h"

namespace spinney::multiway {

// The upper confidence limit of the number of errors, minus e: e of n rows are training errors, and
// the true number exceeds the limit with probability `confidence`.
double extra_errors(double n, double e, double confidence);

void prune_by_errors(const QuinlanRows& rows, double confidence, bool subtree_raising,
                     common::Watch& watch, MultiwayTree& tree);

}  // namespace spinney::multiway
