// The values of a table row by row, categories as their codes and NaN for what is missing: where the
// caller has a row-major matrix this is a view of it, otherwise a copy, in float32 where that holds
// every column.
#pragma once

#include <cstddef>
#include <vector>

#include "spinney/common/types.h"
#include "spinney/table/table.h"

namespace spinney {

class ValueMatrix {
 public:
  ValueMatrix() = default;
  ValueMatrix(const Table& table, int n_threads);

  // Calls body(pointer to the first row, values from one row to the next), typed.
  template <class Body>
  auto visit(const Body& body) const {
    const std::byte* first = view_ != nullptr ? view_ : reinterpret_cast<const std::byte*>(
                                                            copy_.data());
    return is_float_ ? body(reinterpret_cast<const float*>(first), stride_)
                     : body(reinterpret_cast<const double*>(first), stride_);
  }

 private:
  const std::byte* view_ = nullptr;
  std::vector<double> copy_;  // as float64, so that any type is aligned
  std::size_t stride_ = 0;
  bool is_float_ = false;
};

}  // namespace spinney
