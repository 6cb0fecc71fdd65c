// Codes of a few columns side by side, where a matrix has them row by row only: a node that has
// many of the rows reads a byte of each instead of a cache line. Trees ask about the same columns
// again and again, so that the latest ones are kept.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/common/large_array.h"
#include "spinney/table/binned_matrix.h"

namespace spinney::boosting {

class ColumnCopies {
 public:
  explicit ColumnCopies(const table::BinnedMatrix& matrix) : matrix_(matrix) {}

  // How many columns may be kept, a byte a row each.
  void allow(std::size_t most) { most_ = most; }

  // Codes of a column, or null; for n_rows rows that are to be read. Copied first if they are so
  // many that this costs no more than to read them where they are.
  const std::uint8_t* codes(std::uint32_t feature, std::size_t n_rows, int n_threads);

 private:
  struct Copy {
    std::uint32_t feature;
    std::uint64_t used;  // at this turn
    common::LargeArray<std::uint8_t> codes;
  };

  const table::BinnedMatrix& matrix_;
  std::size_t most_ = 0;
  std::uint64_t turn_ = 0;
  std::vector<Copy> copies_;
};

}  // namespace spinney::boosting
