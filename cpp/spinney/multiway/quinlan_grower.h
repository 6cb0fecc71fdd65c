// Grows a tree as Quinlan's ID3 and C4.5 do: a branch for each category, numbers cut in two,
// questions chosen by information gain or gain ratio.
#pragma once

#include "spinney/common/watch.h"
#include "spinney/multiway/quinlan_rows.h"
#include "spinney/multiway/quinlan_split.h"

namespace spinney::multiway {

MultiwayTree grow_quinlan_tree(const table::Table& table, const criterion::Targets& targets,
                               const QuinlanOptions& options, common::Watch& watch);

// What a tree could do at its root: the best split of each column.
std::vector<QuinlanSplit> find_root_splits(const table::Table& table,
                                           const criterion::Targets& targets,
                                           const QuinlanOptions& options);

}  // namespace spinney::multiway
