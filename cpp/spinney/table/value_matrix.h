// The values of a table, with categories as codes and NaN for missing, in two orders: by row for
// small nodes, by column for large nodes. Uses the caller's memory if it has that order; copies are
// float32 if it represents every value.
#pragma once

#include <cstddef>
#include <vector>

#include "spinney/common/types.h"
#include "spinney/table/table.h"

namespace spinney::table {

class ValueMatrix {
 public:
  ValueMatrix() = default;
  ValueMatrix(const Table& table, int n_threads);

  // Calls body(typed pointer to the first row, stride).
  template <class Body>
  auto visit(const Body& body) const {
    const std::byte* first =
        rows_ != nullptr ? rows_ : reinterpret_cast<const std::byte*>(row_copy_.data());
    return is_float_ ? body(reinterpret_cast<const float*>(first), stride_)
                     : body(reinterpret_cast<const double*>(first), stride_);
  }
  // Calls body(typed pointer to the values of the column).
  template <class Body>
  auto visit_column(std::size_t feature, const Body& body) const {
    const ValueColumn& column = columns_[feature];
    const std::byte* first = column.data != nullptr
                                 ? column.data
                                 : reinterpret_cast<const std::byte*>(column.copy.data());
    return column.is_float ? body(reinterpret_cast<const float*>(first))
                           : body(reinterpret_cast<const double*>(first));
  }

 private:
  struct ValueColumn {
    const std::byte* data = nullptr;
    std::vector<double> copy;  // float64, so that every type is aligned
    bool is_float = false;
  };

  const std::byte* rows_ = nullptr;
  std::vector<double> row_copy_;
  std::size_t stride_ = 0;
  bool is_float_ = false;
  std::vector<ValueColumn> columns_;
};

}  // namespace spinney::table
