// Absolute error. There is nothing to subtract here: the error of a set of rows depends on its
// median. But medians of all prefixes of a sequence follow from one another when rows are
// *removed*: keep the node's targets as a linked list in ascending order, take the rows out in the
// order of the feature, last first, and the median moves by at most one link. Two sweeps (prefixes
// and suffixes) give every split's error in linear time, after one sort of the node's targets.
#pragma once

#include <memory>

#include "spinney/criterion/criterion.h"

namespace spinney::criterion {

std::unique_ptr<Criterion> make_absolute_error(const Targets& targets,
                                               const table::EntryLayout& layout);

}  // namespace spinney::criterion
