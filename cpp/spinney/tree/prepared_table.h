// A table and what all trees grown on it share: its codes for best splits, its values row by row
// for random ones.
#pragma once

#include "spinney/table/code_matrix.h"
#include "spinney/table/table.h"
#include "spinney/table/value_matrix.h"

namespace spinney {

struct PreparedTable {
  PreparedTable(const Table& table_, bool random_splits, int n_threads) : table(table_) {
    if (random_splits) {
      values = ValueMatrix(table, n_threads);
    } else {
      codes = CodeMatrix(table, n_threads);
    }
  }

  const Table& table;
  CodeMatrix codes;
  ValueMatrix values;
};

}  // namespace spinney
