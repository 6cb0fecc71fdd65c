// A table and what all trees grown on it share: its codes for best splits, its values row by row
// for random ones.
#pragma once

#include "spinney/table/code_matrix.h"
#include "spinney/table/table.h"
#include "spinney/table/value_matrix.h"

namespace spinney {

struct PreparedTable {
  // bare: nothing is shared, as each tree takes a small sample of the rows.
  PreparedTable(const Table& table_, bool random_splits, int n_threads, bool bare_ = false)
      : table(table_), bare(bare_) {
    if (bare) return;
    if (random_splits) {
      values = ValueMatrix(table, n_threads);
    } else {
      codes = CodeMatrix(table, n_threads);
    }
  }

  const Table& table;
  bool bare = false;
  CodeMatrix codes;
  ValueMatrix values;
};

}  // namespace spinney
