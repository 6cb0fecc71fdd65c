// Gini impurity, entropy and misclassification, for one or several outputs. Integer weights are
// summed as integers, so that equal splits have equal scores for any order of the rows.
#pragma once

#include <memory>

#include "spinney/criterion/criterion.h"

namespace spinney::criterion {

std::unique_ptr<Criterion> make_classification(CriterionKind kind, const Targets& targets,
                                               const table::EntryLayout& layout);

}  // namespace spinney::criterion
