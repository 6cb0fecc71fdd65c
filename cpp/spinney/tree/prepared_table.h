// A table with the data that all its trees share: codes for best splits, values for random splits.
#pragma once

#include "spinney/table/code_matrix.h"
#include "spinney/table/table.h"
#include "spinney/table/value_matrix.h"

namespace spinney::tree {

struct PreparedTable {
  // bare: computes no shared data, because each tree uses a small sample of the rows.
  PreparedTable(const table::Table& table_, bool random_splits, int n_threads, bool bare_ = false)
      : table(table_), bare(bare_) {
    if (bare) return;
    if (random_splits) {
      values = table::ValueMatrix(table, n_threads);
    } else {
      codes = table::CodeMatrix(table, n_threads);
    }
  }

  const table::Table& table;
  bool bare = false;
  table::CodeMatrix codes;
  table::ValueMatrix values;
};

}  // namespace spinney::tree
