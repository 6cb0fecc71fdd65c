// The training table of a booster: binned or with exact values.
#pragma once

#include <cstddef>

namespace spinney::table {

class RowMatrix {
 public:
  virtual ~RowMatrix() = default;
  virtual std::size_t n_rows() const = 0;
};

}  // namespace spinney::table
