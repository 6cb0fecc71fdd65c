// A table of classes whose values are codes, row by row in each column: for shallow trees that are
// grown one after another on the same rows with other weights. A node's rows are counted by code,
// and nothing is sorted or kept in order.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/criterion/criterion.h"
#include "spinney/table/table.h"

namespace spinney::tree {

struct CountedColumn {
  bool categorical = false;
  bool has_missing = false;
  common::Code missing_code = 0;  // the last one, if some row is missing
  // Of each row: its code times the number of classes, and its class.
  std::vector<std::uint32_t> cells;
  std::vector<common::Row> row_of;  // a row of each code
  // Where more than half of the rows have the same code: the others. The common code has what
  // these leave of a node's weight.
  bool has_common = false;
  common::Code common = 0;
  std::vector<common::Row> others;

  std::size_t n_codes() const { return row_of.size(); }
};

struct CountedTable {
  // Rows without weight are left out.
  CountedTable(const table::Table& table, const criterion::Targets& targets, int n_threads);

  // Whether every cell of a table has a number.
  static bool fits(const table::Table& table, const criterion::Targets& targets);

  const table::Table& table;
  std::vector<common::Row> rows;  // ascending
  std::uint32_t n_classes;
  std::vector<CountedColumn> columns;
};

}  // namespace spinney::tree
