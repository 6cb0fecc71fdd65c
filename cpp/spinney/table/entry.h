// An entry is one row of one column in 64 bits: [ code | row | label ]. As integers, entries sort
// by value, then by row. A classification scan reads only entries: the code shows whether the value
// changes, the label is the class.
#pragma once

#include <bit>
#include <cstdint>

#include "spinney/common/compiler.h"
#include "spinney/common/types.h"

namespace spinney::table {

using Entry = std::uint64_t;

// The bit width of x (std::bit_width returns different types in different libraries).
constexpr int bits_of(std::uint64_t x) { return 64 - std::countl_zero(x); }

struct EntryLayout {
  int label_bits = 0;
  int row_bits = 32;

  // label_bits is 0 if n_labels is 0 or 1, or if the label does not fit together with the row and
  // the largest possible code; scans then read labels by row.
  static EntryLayout make(std::uint64_t n_rows, std::uint64_t n_labels) {
    EntryLayout layout;
    layout.row_bits = bits_of(n_rows > 1 ? n_rows - 1 : 1);
    const int code_bits = bits_of(n_rows + 1);  // ranks and a code for missing
    const int wanted = n_labels > 1 ? bits_of(n_labels - 1) : 0;
    layout.label_bits = layout.row_bits + code_bits + wanted <= 64 ? wanted : 0;
    return layout;
  }

  SPINNEY_INLINE int code_shift() const { return label_bits + row_bits; }
  Entry pack(common::Code code, common::Row row, std::uint32_t label) const {
    return (static_cast<Entry>(code) << code_shift()) | (static_cast<Entry>(row) << label_bits) |
           label;
  }
  SPINNEY_INLINE common::Code code(Entry entry) const {
    return static_cast<common::Code>(entry >> code_shift());
  }
  SPINNEY_INLINE common::Row row(Entry entry) const {
    return static_cast<common::Row>((entry >> label_bits) & ((Entry{1} << row_bits) - 1));
  }
  SPINNEY_INLINE std::uint32_t label(Entry entry) const {
    return static_cast<std::uint32_t>(entry & ((Entry{1} << label_bits) - 1));
  }
};

}  // namespace spinney::table
