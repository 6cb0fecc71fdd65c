// A table with exact values and, for each column, its rows sorted by value: for searches over all
// thresholds.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/common/types.h"
#include "spinney/table/row_matrix.h"
#include "spinney/table/table.h"

namespace spinney::table {

struct ExactColumn {
  std::int32_t n_categories = 0;   // 0: numeric
  std::vector<double> values;      // by row; categories as codes, NaN: missing
  std::vector<common::Row> order;  // rows sorted by value, missing last; empty if not sorted
  // A derived column, as in BinnedColumn.
  std::int32_t source = -1;
  std::vector<double> of_category;
};

class ExactMatrix : public RowMatrix {
 public:
  // sorted: fills ExactColumn::order.
  ExactMatrix(const Table& table, bool sorted, int n_threads);

  std::size_t n_rows() const override { return n_rows_; }
  std::size_t n_features() const { return columns_.size(); }
  const ExactColumn& column(std::size_t f) const { return columns_[f]; }
  void derive(std::size_t f, std::size_t source, std::vector<double> of_category);

 private:
  std::size_t n_rows_ = 0;
  std::vector<ExactColumn> columns_;
};

}  // namespace spinney::table
