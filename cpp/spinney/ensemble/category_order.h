// An order of the categories for a whole tree, computed on rows that do not train the tree. An
// unpruned tree that orders many categories by the targets of a node's own rows overfits them.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/common/random.h"
#include "spinney/criterion/criterion.h"
#include "spinney/table/table.h"

namespace spinney::ensemble {

// Whether a row determines the order: half of the out-of-bag rows, or of all rows if none are out
// of the bag. Such a row is not an out-of-bag row of this tree.
inline bool determines_order(std::uint64_t tree_seed, common::Row row) {
  return (common::mix(
              common::combine(tree_seed, static_cast<std::uint64_t>(common::Purpose::orders)) +
              row) &
          1) != 0;
}

// Whether any column has more than two categories.
bool has_ordered_categories(const table::Table& table);

// ranks[feature][code] for every column of more than two categories: by mean target over rows with
// count 0 (`counts` null: over all rows), shrunk to the mean of all. Several classes or outputs are
// projected on a random direction.
std::vector<std::vector<common::Code>> order_categories(const table::Table& table,
                                                        const criterion::Targets& targets,
                                                        const std::uint32_t* counts,
                                                        std::uint64_t tree_seed);

}  // namespace spinney::ensemble
