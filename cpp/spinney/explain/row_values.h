// Blocks of rows as columns, only of the features of the trees' splits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "spinney/common/check.h"
#include "spinney/table/table.h"

namespace spinney::explain {

struct RowValues {
  std::size_t n = 0;
  std::size_t n_whole = 0;         // rows of the full table
  std::size_t stride = 0;          // from one feature to the next
  std::vector<std::int32_t> slot;  // of each feature; -1: unused
  std::vector<double> values;      // [slot][row]
  const double* of(std::int32_t feature) const {
    return values.data() +
           static_cast<std::size_t>(slot[static_cast<std::size_t>(feature)]) * stride;
  }
};

// Rows first … first + n - 1; rows up to a multiple of 16 are there and zero.
inline void read_rows(const table::Table& table, std::size_t first, std::size_t n,
                      const std::vector<std::int32_t>& slot, std::size_t n_slots, RowValues& out) {
  out.n = n;
  out.n_whole = n;
  out.stride = (n + 15) / 16 * 16;
  out.slot = slot;
  out.values.assign(n_slots * out.stride, 0.0);
  for (std::size_t f = 0; f < slot.size(); ++f) {
    const table::Column& column = table.columns[f];
    if (!table.known_finite && column.kind != table::ColumnKind::categorical) {
      for (std::size_t i = 0; i < n; ++i) {
        if (std::isinf(column.value(first + i))) {
          throw common::InputError("Input X contains infinity");
        }
      }
    }
    if (slot[f] < 0) continue;
    double* const to = out.values.data() + static_cast<std::size_t>(slot[f]) * out.stride;
    for (std::size_t i = 0; i < n; ++i) to[i] = column.value(first + i);
  }
}

// Some of the n_whole rows.
inline RowValues take_rows(const RowValues& from, std::size_t first, std::size_t n) {
  RowValues out;
  out.n = n;
  out.n_whole = from.n_whole;
  out.stride = (n + 15) / 16 * 16;
  out.slot = from.slot;
  const std::size_t n_slots = from.stride == 0 ? 0 : from.values.size() / from.stride;
  out.values.assign(n_slots * out.stride, 0.0);
  for (std::size_t slot = 0; slot < n_slots; ++slot) {
    const double* const row = from.values.data() + slot * from.stride + first;
    std::copy(row, row + n, out.values.data() + slot * out.stride);
  }
  return out;
}

}  // namespace spinney::explain
