// Grows ID3 and C4.5 trees: one branch per category, two branches for a numeric threshold. The
// split has the largest information gain or gain ratio.
#pragma once

#include "spinney/common/watch.h"
#include "spinney/multiway/quinlan_rows.h"
#include "spinney/multiway/quinlan_split.h"

namespace spinney::multiway {

MultiwayTree grow_quinlan_tree(const table::Table& table, const criterion::Targets& targets,
                               const QuinlanOptions& options, common::Watch& watch);

// The best split of each column at the root.
std::vector<QuinlanSplit> find_root_splits(const table::Table& table,
                                           const criterion::Targets& targets,
                                           const QuinlanOptions& options);

}  // namespace spinney::multiway
