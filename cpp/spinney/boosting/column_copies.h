// Copies of the codes of a few columns, for a matrix that stores codes by row only. Large nodes
// then read one byte per row instead of one cache line. Trees often split on the same columns, so
// the columns used last are kept.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/common/large_array.h"
#include "spinney/table/binned_matrix.h"

namespace spinney::boosting {

class ColumnCopies {
 public:
  explicit ColumnCopies(const table::BinnedMatrix& matrix) : matrix_(matrix) {}

  // Sets the number of columns that may be kept, one byte per row each.
  void allow(std::size_t n_columns) { max_columns_ = n_columns; }

  // Codes of a column for a node of n_rows rows, or null. Copies the column first if the node has
  // at least half of the rows. Not safe to call from several threads.
  const std::uint8_t* codes(std::uint32_t feature, std::size_t n_rows, int n_threads);

 private:
  struct Copy {
    std::uint32_t feature;
    std::uint64_t last_use;
    common::LargeArray<std::uint8_t> codes;
  };

  const table::BinnedMatrix& matrix_;
  std::size_t max_columns_ = 0;
  std::uint64_t clock_ = 0;
  std::vector<Copy> copies_;
};

}  // namespace spinney::boosting
