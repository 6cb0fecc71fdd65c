// An order of the categories for a whole tree, found on rows that the tree does not see. Unpruned
// trees that order many categories by the targets of a node's own rows learn these rows by heart;
// an order from other rows tells as much about new ones.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/criterion/criterion.h"
#include "spinney/table/table.h"

namespace spinney {

// ranks[feature][code] for every column of more than two categories: by mean target (of several
// classes or outputs: of a random direction) over the rows that `counts` leaves out, drawn towards
// the mean of all where they are few. Null counts: over a random half.
std::vector<std::vector<Code>> order_categories(const Table& table, const Targets& targets,
                                                const std::uint32_t* counts,
                                                std::uint64_t tree_seed);

}  // namespace spinney
