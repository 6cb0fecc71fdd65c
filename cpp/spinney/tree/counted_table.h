// A table of classes whose values are codes, row by row in each column: for shallow trees that are
// grown one after another on the same rows with other weights. A node's rows are counted by code,
// and nothing is sorted or kept in order.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/criterion/criterion.h"
#include "spinney/table/coded_column.h"
#include "spinney/table/table.h"

namespace spinney {

struct CountedColumn {
  CodedColumn about;  // without entries
  // Of each row: its code times the number of classes, and its class.
  std::vector<std::uint32_t> cells;
  std::vector<Row> row_of;  // a row of each code
  // Where more than half of the rows have the same code: the others. At the root the common code
  // has what these leave.
  bool has_common = false;
  std::uint32_t common = 0;
  std::vector<Row> others;
};

struct CountedTable {
  // Rows without weight are left out, from all trees.
  CountedTable(const Table& table, const Targets& targets, CriterionKind criterion, int n_threads);

  const Table& table;
  std::vector<Row> rows;  // ascending
  EntryLayout layout;
  std::uint32_t n_classes;
  std::vector<CountedColumn> columns;
};

}  // namespace spinney
