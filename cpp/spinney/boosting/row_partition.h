// Partitions the rows of a node between its children by their codes of one column.
#pragma once

#include <array>
#include <cstdint>

#include "spinney/boosting/histogram.h"
#include "spinney/common/types.h"

namespace spinney::boosting {

// The codes of one column, and the side of each code.
struct CodeSides {
  const std::uint8_t* codes;
  std::size_t stride;
  bool prefetch;                         // the codes of successive rows are far apart
  std::array<std::uint8_t, 256> left{};  // 1: rows with this code go left
};

// rows: null if they are 0 … n-1; packed: their derivatives, null if these do not move.
struct RowsAndSums {
  common::Row* rows = nullptr;
  PackedSum* packed = nullptr;
};

// Copies n rows to other memory, left rows first, in their order. Returns the number of left rows.
// flags: room for n bytes.
std::size_t partition_rows(const CodeSides& sides, const RowsAndSums& from, std::size_t n,
                           int n_threads, std::uint8_t* flags, const RowsAndSums& to);

// Partitions n rows in place. The order within a side depends on the rows alone, not on threads.
// are_all: the rows are 0 … n-1 and not written yet.
std::size_t partition_in_place(const CodeSides& sides, common::Row* rows, std::size_t n,
                               bool are_all, int n_threads);

}  // namespace spinney::boosting
