// Squared error and Poisson deviance: the score needs only Σw and Σw·y of each side.
#pragma once

#include <memory>

#include "spinney/criterion/criterion.h"

namespace spinney::criterion {

std::unique_ptr<Criterion> make_regression(CriterionKind kind, const Targets& targets,
                                           const table::EntryLayout& layout);

}  // namespace spinney::criterion
