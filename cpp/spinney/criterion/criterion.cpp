#include "spinney/criterion/criterion.h"

#include "spinney/criterion/absolute_error.h"
#include "spinney/criterion/classification.h"
#include "spinney/criterion/regression.h"

namespace spinney::criterion {

using common::Row;

void sum_lanes(const Criterion& criterion, const LaneTask& task, const LaneValues* values,
               const LaneValues& cut, double* stats, Row* n_rows, ScanScratch& scratch) {
  if (const LaneCriterion* lanes = criterion.lanes()) {
    return lanes->sum_lanes(task, values, cut, stats, n_rows);
  }
  for (std::size_t l = 0; l < task.n_used; ++l) {
    scratch.rows.clear();
    for (Row i = 0; i < task.rows.n; ++i) {
      if (values[i].lane[l] <= cut.lane[l]) scratch.rows.push_back(task.rows.rows[i]);
    }
    n_rows[l] = static_cast<Row>(scratch.rows.size());
    if (n_rows[l] == 0) continue;
    criterion.sum(scratch.rows.data(), n_rows[l], stats + l * criterion.stat_size());
  }
}

Row sum_below(const Criterion& criterion, const RowSpan& rows, const double* values, double cut,
              double* stat, ScanScratch& scratch) {
  if (const LaneCriterion* lanes = criterion.lanes()) {
    return lanes->sum_below(rows, values, cut, stat);
  }
  scratch.rows.clear();
  for (Row i = 0; i < rows.n; ++i) {
    if (values[i] <= cut) scratch.rows.push_back(rows.rows[i]);
  }
  const auto n = static_cast<Row>(scratch.rows.size());
  if (n > 0) criterion.sum(scratch.rows.data(), n, stat);
  return n;
}

std::unique_ptr<Criterion> make_criterion(CriterionKind kind, const Targets& targets,
                                          const table::EntryLayout& layout) {
  if (is_classification(kind)) return make_classification(kind, targets, layout);
  if (kind == CriterionKind::absolute_error) return make_absolute_error(targets, layout);
  return make_regression(kind, targets, layout);
}

}  // namespace spinney::criterion
