// A classification table in codes, for sequences of shallow trees on the same rows with changing
// weights (AdaBoost). Nodes sum weights by code and class; nothing is sorted.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/criterion/criterion.h"
#include "spinney/table/table.h"

namespace spinney::tree {

struct CountedColumn {
  bool categorical = false;
  bool has_missing = false;
  common::Code missing_code = 0;  // the last code, if has_missing
  // By row: code * n_classes + class.
  std::vector<std::uint32_t> cells;
  std::vector<common::Row> row_of;  // by code: one of its rows
  // If more than half of the rows share a code: the other rows. The weight of the common code is
  // the node's minus that of the others.
  bool has_common = false;
  common::Code common = 0;
  std::vector<common::Row> others;

  std::size_t n_codes() const { return row_of.size(); }
};

struct CountedTable {
  // Rows of weight 0 are excluded.
  CountedTable(const table::Table& table, const criterion::Targets& targets, int n_threads);

  // Whether 32 bits can number all cells.
  static bool fits(const table::Table& table, const criterion::Targets& targets);

  const table::Table& table;
  std::vector<common::Row> rows;  // ascending
  std::uint32_t n_classes;
  std::vector<CountedColumn> columns;
};

}  // namespace spinney::tree
