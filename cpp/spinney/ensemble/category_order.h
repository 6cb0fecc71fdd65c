// An order of the categories for a whole tree, found on rows that the tree does not see. Unpruned
// trees that order many categories by the targets of a node's own rows learn these rows by heart;
// an order from other rows tells as much about new ones.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/common/random.h"
#include "spinney/criterion/criterion.h"
#include "spinney/table/table.h"

namespace spinney::ensemble {

// Half of the rows that a tree does not see, or of all rows if it sees them all, tell the order;
// out of the bag a tree is asked only about rows that did not.
inline bool tells_order(std::uint64_t tree_seed, common::Row row) {
  return (common::mix(
              common::combine(tree_seed, static_cast<std::uint64_t>(common::Purpose::orders)) +
              row) &
          1) != 0;
}

// Whether any column is ordered so.
bool has_ordered_categories(const table::Table& table);

// ranks[feature][code] for every column of more than two categories: by mean target (of several
// classes or outputs: of a random direction) over rows that `counts` leaves out (null: none), drawn
// towards the mean of all where they are few.
std::vector<std::vector<common::Code>> order_categories(const table::Table& table,
                                                        const criterion::Targets& targets,
                                                        const std::uint32_t* counts,
                                                        std::uint64_t tree_seed);

}  // namespace spinney::ensemble
