// The rows of a linear model: dense with any strides, or sparse row by row. Nothing is copied.
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

// Rows are cut into pieces that depend on their number alone; sums of pieces are added in order.
struct Pieces {
  std::size_t n_rows;
  std::size_t unit;      // a piece has so many rows, or a multiple
  std::size_t n_pieces;  // at most `most`

  Pieces(std::size_t n_rows_, std::size_t unit_, std::size_t most) : n_rows(n_rows_), unit(unit_) {
    const std::size_t n_units = (n_rows + unit - 1) / unit;
    n_pieces = n_units < most ? n_units : most;
  }
  std::size_t begin(std::size_t piece) const {
    const std::size_t n_units = (n_rows + unit - 1) / unit;
    const std::size_t row = n_units * piece / n_pieces * unit;
    return row < n_rows ? row : n_rows;
  }
  std::size_t end(std::size_t piece) const { return begin(piece + 1); }
};

}  // namespace spinney::linear
