// A table whose columns are coded and sorted once, for sequences of trees on the same rows with
// changing weights.
#pragma once

#include <vector>

#include "spinney/criterion/criterion.h"
#include "spinney/table/coded_column.h"
#include "spinney/table/table.h"

namespace spinney::tree {

struct PresortedTable {
  // Rows of weight 0 are excluded from all trees.
  PresortedTable(const table::Table& table, const criterion::Targets& targets,
                 criterion::CriterionKind criterion, int n_threads);

  const table::Table& table;
  std::vector<common::Row> rows;  // ascending
  table::EntryLayout layout;
  std::vector<table::CodedColumn> columns;
};

}  // namespace spinney::tree
