#include "spinney/criterion/criterion.h"

#include "spinney/criterion/absolute_error.h"
#include "spinney/criterion/classification.h"
#include "spinney/criterion/regression.h"

namespace spinney {

void Criterion::sum_lanes(const Row* rows, Row n, const LaneKeys* masks, double* stats,
                          Row* n_rows, ScanScratch& scratch) const {
  for (std::size_t l = 0; l < n_lanes; ++l) {
    scratch.rows.clear();
    for (Row i = 0; i < n; ++i) {
      if (masks[i].lane[l] != 0) scratch.rows.push_back(rows[i]);
    }
    n_rows[l] = static_cast<Row>(scratch.rows.size());
    if (n_rows[l] == 0) continue;
    sum(scratch.rows.data(), n_rows[l], stats + l * stat_size());
  }
}

std::unique_ptr<Criterion> make_criterion(CriterionKind kind, const Targets& targets,
                                          const EntryLayout& layout) {
  if (is_classification(kind)) return make_classification(kind, targets, layout);
  if (kind == CriterionKind::absolute_error) return make_absolute_error(targets, layout);
  return make_regression(kind, targets, layout);
}

}  // namespace spinney
