// Gini, entropy and misclassification, for one output or several. Class weights are summed in
// integers wherever the weights are integers, so that equal splits have equal scores whatever the
// order of the rows.
#pragma once

#include <memory>

#include "spinney/criterion/criterion.h"

namespace spinney::criterion {

std::unique_ptr<Criterion> make_classification(CriterionKind kind, const Targets& targets,
                                               const table::EntryLayout& layout);

}  // namespace spinney::criterion
