// A table with every value kept, and each column's rows in the order of its values: for searches
// that look at every cut.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/common/types.h"
#include "spinney/table/row_matrix.h"
#include "spinney/table/table.h"

namespace spinney::table {

struct ExactColumn {
  std::int32_t n_categories = 0;  // 0: numbers
  std::vector<double> values;     // [row], categories as codes, NaN for what is missing
  std::vector<common::Row>
      order;  // rows by value, missing ones last; empty for rows to look at only
  // As in BinnedColumn: numbers of the categories of another column.
  std::int32_t source = -1;
  std::vector<double> of_category;
};

class ExactMatrix : public RowMatrix {
 public:
  // sorted: also in the order of the values.
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
