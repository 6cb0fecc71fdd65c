#include "spinney/criterion/criterion.h"

#include "spinney/criterion/absolute_error.h"
#include "spinney/criterion/classification.h"
#include "spinney/criterion/regression.h"

namespace spinney {

std::unique_ptr<Criterion> make_criterion(CriterionKind kind, const Targets& targets,
                                          const EntryLayout& layout) {
  if (is_classification(kind)) return make_classification(kind, targets, layout);
  if (kind == CriterionKind::absolute_error) return make_absolute_error(targets, layout);
  return make_regression(kind, targets, layout);
}

}  // namespace spinney
