// Reads a table in blocks of rows, for code that accesses features in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "spinney/common/types.h"
#include "spinney/table/table.h"

namespace spinney::table {

struct SpecialValues {
  bool infinite = false;
  bool missing = false;
};

SpecialValues find_special(const double* values, std::size_t n);
SpecialValues find_special(const float* values, std::size_t n);

// Rows of a C-contiguous matrix are read in place; checking them for special values also loads them
// into the cache. Other tables are copied. Categories are codes, NaN is missing.
class RowReader {
 public:
  // n_categories: by feature of the model, 0 for numeric; throws if the table does not match.
  RowReader(const Table& table, std::span<const std::int32_t> n_categories);

  bool in_place() const { return in_place_; }
  // Copies only these columns.
  void read_only(std::vector<std::uint32_t> features) { features_ = std::move(features); }
  // The maximum number of rows of a block; smaller if wide rows are copied.
  std::size_t max_rows() const;

  // Calls body(typed pointer to the first row, stride, whether values may be missing). Throws
  // InputError if a value is infinite, unless the table is known to be finite.
  template <class Body>
  void read(std::size_t first, std::size_t n, const Body& body) const {
    if (!in_place_) {
      std::vector<double> rows(n * table_.n_features());
      copy(first, n, rows.data());
      body(static_cast<const double*>(rows.data()), table_.n_features(), true);
      return;
    }
    const Column& head = table_.columns[0];
    const std::byte* at = head.data + static_cast<std::ptrdiff_t>(first) * head.stride;
    if (head.dtype == Dtype::float64) {
      const auto* rows = reinterpret_cast<const double*>(at);
      body(rows, stride_, check_values(rows, n));
    } else {
      const auto* rows = reinterpret_cast<const float*>(at);
      body(rows, stride_, check_values(rows, n));
    }
  }

 private:
  template <class Value>
  bool check_values(const Value* rows, std::size_t n) const;
  void copy(std::size_t first, std::size_t n, double* rows) const;

  const Table& table_;
  std::vector<std::uint32_t> features_;  // ascending
  bool in_place_ = false;
  std::size_t stride_ = 0;
};

}  // namespace spinney::table
