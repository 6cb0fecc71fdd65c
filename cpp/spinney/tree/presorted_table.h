// A table whose columns are coded and sorted once, for trees that are grown one after another on
// the same rows with other weights.
#pragma once

#include <vector>

#include "spinney/criterion/criterion.h"
#include "spinney/table/coded_column.h"
#include "spinney/table/table.h"

namespace spinney::tree {

struct PresortedTable {
  // Rows without weight are left out, from all trees.
  PresortedTable(const table::Table& table, const criterion::Targets& targets,
                 criterion::CriterionKind criterion, int n_threads);

  const table::Table& table;
  std::vector<common::Row> rows;  // ascending
  table::EntryLayout layout;
  std::vector<table::CodedColumn> columns;
};

}  // namespace spinney::tree
