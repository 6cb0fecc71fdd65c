#include "spinney/table/exact_matrix.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "spinney/common/check.h"
#include "spinney/common/parallel.h"

namespace spinney::table {

using common::parallel_for;
using common::worthwhile_threads;

ExactMatrix::ExactMatrix(const Table& table, bool sorted, int n_threads)
    : n_rows_(table.n_rows), columns_(table.n_features()) {
  std::vector<common::Row> rows(n_rows_);
  std::iota(rows.begin(), rows.end(), common::Row{0});
  std::atomic<bool> infinite{false};
  const double work = 100.0 * static_cast<double>(n_rows_ * columns_.size());
  parallel_for(columns_.size(), worthwhile_threads(work, n_threads), [&](std::size_t f, int) {
    ExactColumn& column = columns_[f];
    const Column& from = table.columns[f];
    column.n_categories = from.kind == ColumnKind::categorical ? from.n_categories : 0;
    column.values.resize(n_rows_);
    gather(from, rows.data(), static_cast<common::Row>(n_rows_), column.values.data());
    if (std::any_of(column.values.begin(), column.values.end(),
                    [](double value) { return std::isinf(value); })) {
      infinite = true;
    }
    if (!sorted || column.n_categories > 0) return;
    column.order = rows;
    std::sort(column.order.begin(), column.order.end(), [&](common::Row a, common::Row b) {
      const double x = column.values[a];
      const double y = column.values[b];
      if (std::isnan(x) || std::isnan(y)) {
        return std::isnan(x) != std::isnan(y) ? std::isnan(y) : a < b;
      }
      return x < y || (x == y && a < b);
    });
  });
  if (infinite) {
    throw common::InputError(
        "Input X contains infinity or a value too large for dtype('float64').");
  }
}

void ExactMatrix::derive(std::size_t f, std::size_t source, std::vector<double> of_category) {
  if (f >= n_features() || source >= f)
    throw common::InputError("derive: column indices are out of range");
  columns_[f].source = static_cast<std::int32_t>(source);
  columns_[f].of_category = std::move(of_category);
}

}  // namespace spinney::table
