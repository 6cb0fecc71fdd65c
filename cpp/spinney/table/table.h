// A table is a list of views of the caller's columns: pointer, stride and type.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "spinney/common/types.h"

namespace spinney::table {

enum class Dtype : std::uint8_t { float64, float32, int32 };

enum class ColumnKind : std::uint8_t {
  numeric,      // every row has a stored value; NaN is missing
  categorical,  // int32 codes 0 … n_categories-1; anything else is missing
  sparse,       // numeric, stored values at ascending rows, zero elsewhere
};

struct Column {
  ColumnKind kind = ColumnKind::numeric;
  Dtype dtype = Dtype::float64;
  const std::byte* data = nullptr;
  std::ptrdiff_t stride = 0;           // in bytes
  std::int32_t n_categories = 0;       // categorical only
  const std::int32_t* rows = nullptr;  // sparse only: row of each stored value
  std::size_t n_stored = 0;            // sparse only

  // The i-th stored value (dense columns: of row i) as float64; exact for every dtype.
  double stored(std::size_t i) const {
    const std::byte* at = data + static_cast<std::ptrdiff_t>(i) * stride;
    switch (dtype) {
      case Dtype::float64:
        return *reinterpret_cast<const double*>(at);
      case Dtype::float32:
        return static_cast<double>(*reinterpret_cast<const float*>(at));
      default:
        return static_cast<double>(*reinterpret_cast<const std::int32_t*>(at));
    }
  }

  // The value of a row: a number, or the code of a category; NaN if missing.
  double value(std::size_t row) const {
    if (kind == ColumnKind::categorical) {
      const std::int32_t code = category(row);
      return code < 0 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(code);
    }
    if (kind == ColumnKind::sparse) {
      const auto* end = rows + n_stored;
      const auto* found = std::lower_bound(rows, end, static_cast<std::int32_t>(row));
      return found != end && *found == static_cast<std::int32_t>(row)
                 ? stored(static_cast<std::size_t>(found - rows))
                 : 0.0;
    }
    return stored(row);
  }

  // The category of a row; −1 if missing.
  std::int32_t category(std::size_t row) const {
    const std::int32_t code =
        *reinterpret_cast<const std::int32_t*>(data + static_cast<std::ptrdiff_t>(row) * stride);
    return code >= 0 && code < n_categories ? code : -1;
  }
};

// out[i] = the value of rows[i]; tests the dtype only once.
inline void gather(const Column& column, const common::Row* rows, common::Row n, double* out) {
  if (column.kind != ColumnKind::numeric || column.dtype == Dtype::int32) {
    for (common::Row i = 0; i < n; ++i) out[i] = column.value(rows[i]);
  } else if (column.dtype == Dtype::float64) {
    for (common::Row i = 0; i < n; ++i) {
      out[i] = *reinterpret_cast<const double*>(column.data + static_cast<std::ptrdiff_t>(rows[i]) *
                                                                  column.stride);
    }
  } else {
    for (common::Row i = 0; i < n; ++i) {
      out[i] = static_cast<double>(*reinterpret_cast<const float*>(
          column.data + static_cast<std::ptrdiff_t>(rows[i]) * column.stride));
    }
  }
}

struct Table {
  std::size_t n_rows = 0;
  std::vector<Column> columns;
  bool known_finite = true;  // the caller has checked for infinity

  std::size_t n_features() const { return columns.size(); }

  // Whether the columns form one row-major matrix of float32 or float64.
  bool is_row_major() const {
    if (columns.empty()) return false;
    const Column& head = columns[0];
    if (head.kind != ColumnKind::numeric || head.dtype == Dtype::int32) return false;
    const std::ptrdiff_t item = head.dtype == Dtype::float64 ? 8 : 4;
    if (head.stride <= 0 || head.stride % item != 0) return false;
    for (std::size_t f = 1; f < columns.size(); ++f) {
      const Column& column = columns[f];
      if (column.kind != head.kind || column.dtype != head.dtype || column.stride != head.stride ||
          column.data != head.data + static_cast<std::ptrdiff_t>(f) * item) {
        return false;
      }
    }
    return true;
  }
};

}  // namespace spinney::table
