// Views of the rows of a linear model: dense with any strides, or sparse (CSR).
#pragma once

#include <cstddef>
#include <cstdint>

namespace spinney::linear {

template <class T>
struct DenseRows {
  const T* values;
  std::ptrdiff_t row_stride;
  std::ptrdiff_t column_stride;
  std::size_t n_rows;
  std::size_t n_features;
};

template <class Index>
struct SparseRows {
  const double* values;
  const Index* columns;
  const Index* starts;  // n_rows + 1
  std::size_t n_rows;
  std::size_t n_features;
};

// Splits rows into chunks that depend only on the number of rows. Sums of chunks are added in
// order.
struct Chunks {
  std::size_t n_rows;
  std::size_t unit;      // chunk sizes are multiples of this, except the last
  std::size_t n_chunks;  // at most `max_chunks`

  Chunks(std::size_t n_rows_, std::size_t unit_, std::size_t max_chunks)
      : n_rows(n_rows_), unit(unit_) {
    const std::size_t n_units = (n_rows + unit - 1) / unit;
    n_chunks = n_units < max_chunks ? n_units : max_chunks;
  }
  std::size_t begin(std::size_t chunk) const {
    const std::size_t n_units = (n_rows + unit - 1) / unit;
    const std::size_t row = n_units * chunk / n_chunks * unit;
    return row < n_rows ? row : n_rows;
  }
  std::size_t end(std::size_t chunk) const { return begin(chunk + 1); }
};

}  // namespace spinney::linear
