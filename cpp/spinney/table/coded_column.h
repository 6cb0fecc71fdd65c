// Replaces a column's values by their ranks among the distinct values, and sorts the rows. A value
// of more than half of the rows can be implicit: only the other rows have entries. The cost then
// depends on the number of rare values, and sparse columns are never densified.
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
  bool has_missing = false;       // in the sample
  bool has_implicit = false;      // rows without entry have implicit_code
  common::Code missing_code = 0;  // the number of codes of present values
  common::Code implicit_code = 0;
  double implicit_value = 0;  // numeric columns; NaN when the implicit value is missing
  common::Row n_entries = 0;
  std::unique_ptr<Entry[]> entries;

  bool is_missing(common::Code code) const { return code == missing_code; }
};

// The rows to code, and their labels for the entries (null: none).
struct CodingRows {
  const common::Row* rows = nullptr;  // ascending
  common::Row n_rows = 0;
  const std::uint32_t* labels = nullptr;  // indexed by row
};

// Upper bound of the codes of all columns, including missing.
std::size_t largest_code(const Table& table);

// Codes every column of a table and passes it to `consume`, which may move it. Calls are in any
// order and from several threads. allow_implicit = false: every row has an entry in every column.
void code_columns(const Table& table, const CodingRows& sample, const EntryLayout& layout,
                  bool allow_implicit, int n_threads,
                  const std::function<void(std::size_t feature, CodedColumn& column)>& consume);

// Returns the coded columns.
std::vector<CodedColumn> code_table(const Table& table, const CodingRows& sample,
                                    const EntryLayout& layout, bool allow_implicit, int n_threads);

}  // namespace spinney::table
