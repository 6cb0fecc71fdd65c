#include "spinney/table/value_matrix.h"

#include <algorithm>
#include <limits>

#include "spinney/common/parallel.h"

namespace spinney::table {

using common::parallel_for;
using common::worthwhile_threads;

namespace {

bool fits_float(const Column& column) {
  return column.dtype == Dtype::float32 ||
         (column.kind == ColumnKind::categorical && column.n_categories < (1 << 24));
}

template <class Value>
void copy_column(const Column& column, std::size_t n_rows, std::size_t stride, Value* out) {
  if (column.kind == ColumnKind::sparse) {
    for (std::size_t row = 0; row < n_rows; ++row) out[row * stride] = 0;
    for (std::size_t i = 0; i < column.n_stored; ++i) {
      out[static_cast<std::size_t>(column.rows[i]) * stride] = static_cast<Value>(column.stored(i));
    }
    return;
  }
  for (std::size_t row = 0; row < n_rows; ++row) {
    out[row * stride] = static_cast<Value>(column.value(row));
  }
}

}  // namespace

ValueMatrix::ValueMatrix(const Table& table, int n_threads) {
  const std::size_t n_features = table.n_features();
  const std::size_t n_rows = table.n_rows;
  const std::size_t n_values = n_rows * n_features;
  const double work = 3.0 * static_cast<double>(n_values);
  n_threads = worthwhile_threads(work, n_threads);
  if (table.is_row_major()) {
    const Column& head = table.columns[0];
    rows_ = head.data;
    is_float_ = head.dtype == Dtype::float32;
    stride_ = static_cast<std::size_t>(head.stride) / (is_float_ ? 4 : 8);
  } else {
    is_float_ = std::all_of(table.columns.begin(), table.columns.end(), fits_float);
    stride_ = n_features;
    row_copy_.resize(is_float_ ? (n_values + 1) / 2 : n_values);
    parallel_for(n_features, n_threads, [&](std::size_t f, int) {
      visit([&](const auto* first, std::size_t) {
        using Value = std::remove_const_t<std::remove_pointer_t<decltype(first)>>;
        copy_column(table.columns[f], n_rows, stride_, const_cast<Value*>(first) + f);
      });
    });
  }
  columns_.resize(n_features);
  parallel_for(n_features, n_threads, [&](std::size_t f, int) {
    const Column& column = table.columns[f];
    ValueColumn& out = columns_[f];
    out.is_float = fits_float(column);
    const std::ptrdiff_t item = out.is_float ? 4 : 8;
    if (column.kind == ColumnKind::numeric && column.dtype != Dtype::int32 &&
        column.stride == item) {
      out.data = column.data;
      return;
    }
    out.copy.resize(out.is_float ? (n_rows + 1) / 2 : n_rows);
    visit_column(f, [&](const auto* first) {
      using Value = std::remove_const_t<std::remove_pointer_t<decltype(first)>>;
      copy_column(column, n_rows, 1, const_cast<Value*>(first));
    });
  });
}

}  // namespace spinney::table
