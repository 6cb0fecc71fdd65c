// The codes of a table, shared by all trees of a forest and stored twice. By row, with the width of
// the column with most codes: a small node reads its random columns from few cache lines. By
// column, with the width of each column: a large node reads a column nearly in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "spinney/common/types.h"
#include "spinney/table/coded_column.h"
#include "spinney/table/table.h"

namespace spinney::table {

struct ColumnCodes {
  std::vector<std::uint8_t> bytes;
  int width = 4;
};

class CodeMatrix {
 public:
  CodeMatrix() = default;
  CodeMatrix(const Table& table, int n_threads);

  std::size_t n_features() const { return columns_.size(); }
  // The description of a column, without entries.
  const CodedColumn& column(std::size_t feature) const { return columns_[feature]; }
  // Calls body with a typed pointer to the first row; the stride is n_features() codes.
  template <class Body>
  auto visit(const Body& body) const {
    switch (width_) {
      case 1:
        return body(reinterpret_cast<const std::uint8_t*>(data_.data()));
      case 2:
        return body(reinterpret_cast<const std::uint16_t*>(data_.data()));
      default:
        return body(reinterpret_cast<const std::uint32_t*>(data_.data()));
    }
  }
  // The same for the codes of one column, by row.
  template <class Body>
  auto visit_column(std::size_t feature, const Body& body) const {
    const ColumnCodes& codes = by_column_[feature];
    switch (codes.width) {
      case 1:
        return body(codes.bytes.data());
      case 2:
        return body(reinterpret_cast<const std::uint16_t*>(codes.bytes.data()));
      default:
        return body(reinterpret_cast<const std::uint32_t*>(codes.bytes.data()));
    }
  }
  // The largest number of codes of a column, including missing.
  std::size_t max_codes() const { return max_codes_; }

 private:
  std::vector<CodedColumn> columns_;
  std::vector<ColumnCodes> by_column_;
  std::vector<std::uint32_t> data_;  // words, so that every width is aligned
  int width_ = 4;
  std::size_t max_codes_ = 0;
};

}  // namespace spinney::table
