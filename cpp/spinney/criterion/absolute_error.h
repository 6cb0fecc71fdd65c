// Absolute error: Σ |y − median|. The statistics are not additive, because the median of a set
// does not follow from the medians of its parts.
//
// The scan keeps the node's targets in a sorted linked list. It removes rows in descending order of
// the feature; each removal moves the median by at most one link. One sweep over prefixes and one
// over suffixes give the error of every split in linear time, after one sort of the targets.
#pragma once

#include <memory>

#include "spinney/criterion/criterion.h"

namespace spinney::criterion {

std::unique_ptr<Criterion> make_absolute_error(const Targets& targets,
                                               const table::EntryLayout& layout);

}  // namespace spinney::criterion
