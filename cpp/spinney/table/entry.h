// An entry is one row of one column in 64 bits: [ code | row | label ]. Sorted as plain integers,
// entries are in the order of values, and of rows among equal values. A scan reads nothing else:
// whether the value changes (code), whose turn it is (row), and to which class it adds (label).
#pragma once

#include <bit>
#include <cstdint>

#include "spinney/common/types.h"

namespace spinney::table {

using Entry = std::uint64_t;

// How many bits hold x (std::bit_width returns different types in different libraries).
constexpr int bits_of(std::uint64_t x) { return 64 - std::countl_zero(x); }

struct EntryLayout {
  int label_bits = 0;
  int row_bits = 32;

  // n_labels = 0 or 1 leaves the label out; it is also left out where it does not fit beside the
  // row and the largest possible code (label_bits is 0 then, and scans gather by row).
  static EntryLayout make(std::uint64_t n_rows, std::uint64_t n_labels) {
    EntryLayout layout;
    layout.row_bits = bits_of(n_rows > 1 ? n_rows - 1 : 1);
    const int code_bits = bits_of(n_rows + 1);  // ranks, and one code for missing
    const int wanted = n_labels > 1 ? bits_of(n_labels - 1) : 0;
    layout.label_bits = layout.row_bits + code_bits + wanted <= 64 ? wanted : 0;
    return layout;
  }

  int code_shift() const { return label_bits + row_bits; }
  Entry pack(common::Code code, common::Row row, std::uint32_t label) const {
    return (static_cast<Entry>(code) << code_shift()) | (static_cast<Entry>(row) << label_bits) |
           label;
  }
  common::Code code(Entry entry) const { return static_cast<common::Code>(entry >> code_shift()); }
  common::Row row(Entry entry) const {
    return static_cast<common::Row>((entry >> label_bits) & ((Entry{1} << row_bits) - 1));
  }
  std::uint32_t label(Entry entry) const {
    return static_cast<std::uint32_t>(entry & ((Entry{1} << label_bits) - 1));
  }
};

}  // namespace spinney::table
