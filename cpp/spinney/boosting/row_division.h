// Dividing the rows of a node between its children by their codes of one column.
#pragma once

#include <array>
#include <cstdint>

#include "spinney/boosting/histogram.h"
#include "spinney/common/types.h"

namespace spinney::boosting {

// The codes of one column, and which of them go left.
struct RowDivision {
  const std::uint8_t* codes;
  std::size_t stride;
  bool far_apart;  // the codes of rows that follow each other
  std::array<std::uint8_t, 256> left{};
};

// Rows, null if they are 0 … n-1, and their sums, null if these stay where they are.
struct RowsAndSums {
  common::Row* rows = nullptr;
  PackedSum* packed = nullptr;
};

// Writes n rows into other memory, those that go left first, in their order; returns how many these
// are. flags: room for a byte of each row.
std::size_t divide_rows(const RowDivision& division, const RowsAndSums& from, std::size_t n,
                        int n_threads, std::uint8_t* flags, const RowsAndSums& to);

// The same with rows that stay in their memory; those of a side are in any order that depends on
// nothing but the rows. are_all: they are 0 … n-1, not written yet.
std::size_t divide_in_place(const RowDivision& division, common::Row* rows, std::size_t n,
                            bool are_all, int n_threads);

}  // namespace spinney::boosting
