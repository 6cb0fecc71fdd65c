// Coding: a column's values become ranks among its distinct values, sorted once. A value that more
// than half of the rows share is left implicit: the entries then list only the other rows, so a
// column of rare events costs what its events cost, and a sparse column is never made dense.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "spinney/common/types.h"
#include "spinney/table/entry.h"
#include "spinney/table/table.h"

namespace spinney::table {

struct CodedColumn {
  bool categorical = false;
  bool has_missing = false;       // some row of the sample is missing
  bool has_implicit = false;      // rows without an entry have implicit_code
  common::Code missing_code = 0;  // one past the largest code; also the number of other codes
  common::Code implicit_code = 0;
  double implicit_value = 0;  // numeric columns; NaN when the implicit value is missing
  common::Row n_entries = 0;
  std::unique_ptr<Entry[]> entries;

  bool is_missing(common::Code code) const { return code == missing_code; }
};

// Which rows take part, and the label that travels with each (null: none).
struct CodingRows {
  const common::Row* rows = nullptr;  // ascending
  common::Row n_rows = 0;
  const std::uint32_t* labels = nullptr;  // indexed by row
};

// The largest code that a column may have: that of missing, where all values differ.
std::size_t largest_code(const Table& table);

// Codes every column of a table and hands each to `consume`, which may take it; columns come in any
// order, from several threads. allow_implicit = false lists every row of every column.
void code_columns(const Table& table, const CodingRows& sample, const EntryLayout& layout,
                  bool allow_implicit, int n_threads,
                  const std::function<void(std::size_t feature, CodedColumn& column)>& consume);

// The same, all columns kept.
std::vector<CodedColumn> code_table(const Table& table, const CodingRows& sample,
                                    const EntryLayout& layout, bool allow_implicit, int n_threads);

}  // namespace spinney::table
