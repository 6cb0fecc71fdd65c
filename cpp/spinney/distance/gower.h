// Gower's distance between rows with numeric columns, categorical columns and missing values. It is
// the weighted mean, over the columns that neither row misses, of |a - b| / range for numeric
// columns and of 0 (equal) or 1 (different) for categorical columns. It is 1 if no such column
// exists.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spinney::distance {

// Column-major: column j starts at j * n_rows. A missing number is NaN and a missing category is
// -1. The code `unseen` marks a category that is not in the training rows; it differs from every
// other.
struct MixedRows {
  static constexpr std::int32_t unseen = -2;

  const double* numbers;
  const std::int32_t* codes;
  std::size_t n_rows;
};

// Scales and weights of the columns. Numeric column j adds |a - b| * number_scales[j], where the
// scale is weight / range. Categorical column j adds code_weights[j] if the codes differ.
struct MixedColumns {
  std::size_t n_numbers, n_codes;
  const double* number_scales;
  const double* number_weights;
  const double* code_weights;
  // Whether the rows (not the queries) have missing values in the column. Columns without missing
  // values are added faster.
  const bool* number_misses;
  const bool* code_misses;
};

// The k nearest rows of each query, as arrays of n_queries × k; the smaller index wins a tie.
void find_nearest_gower(const MixedColumns& columns, const MixedRows& queries,
                        const MixedRows& rows, std::size_t k, int n_threads, double* distances,
                        std::int64_t* indices);

// All distances, as an array of n_queries × n_rows.
void gower_distances(const MixedColumns& columns, const MixedRows& queries, const MixedRows& rows,
                     int n_threads, double* out);

}  // namespace spinney::distance
