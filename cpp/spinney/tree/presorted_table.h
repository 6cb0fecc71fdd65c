// A table whose columns are coded and sorted once, for trees that are grown one after another on
// the same rows with other weights.
#pragma once

#include <vector>

#include "spinney/criterion/criterion.h"
#include "spinney/table/coded_column.h"
#include "spinney/table/table.h"

namespace spinney {

struct PresortedTable {
  // Rows without weight are left out, from all trees.
  PresortedTable(const Table& table, const Targets& targets, CriterionKind criterion,
                 int n_threads);

  const Table& table;
  std::vector<Row> rows;  // ascending
  EntryLayout layout;
  std::vector<CodedColumn> columns;
};

}  // namespace spinney
