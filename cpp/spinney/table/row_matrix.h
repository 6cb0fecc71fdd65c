// Rows in the form that trees of a booster are grown from: binned, or with every value kept.
#pragma once

#include <cstddef>

namespace spinney::table {

class RowMatrix {
 public:
  virtual ~RowMatrix() = default;
  virtual std::size_t n_rows() const = 0;
};

}  // namespace spinney::table
