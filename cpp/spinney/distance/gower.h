// Gower's distance between rows of numbers and categories, some of them missing: the mean, over the
// columns that both rows have, of |a - b| / range for numbers and of 0 or 1 for categories. Two
// rows that share no column are at distance 1.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spinney::distance {

// Column j has its n_rows values side by side, at j * n_rows. A missing number is NaN, a missing
// category negative and larger than `unseen`, which differs from every category.
struct MixedRows {
  static constexpr std::int32_t unseen = -2;

  const double* numbers;
  const std::int32_t* codes;
  std::size_t n_rows;
};

// What holds for a column whichever rows are compared. A difference of numbers counts
// number_scales[j] (weight / range) a unit, a difference of categories code_weights[j].
struct MixedColumns {
  std::size_t n_numbers, n_codes;
  const double* number_scales;
  const double* number_weights;
  const double* code_weights;
  // Whether the rows (not the queries) miss a value; columns that do not are added faster.
  const bool* number_misses;
  const bool* code_misses;
};

// The k nearest rows of each query, as arrays of n_queries × k; ties go to the smaller row.
void find_nearest_gower(const MixedColumns& columns, const MixedRows& queries,
                        const MixedRows& rows, std::size_t k, int n_threads, double* distances,
                        std::int64_t* indices);

// All distances, as an array of n_queries × n_rows.
void gower_distances(const MixedColumns& columns, const MixedRows& queries, const MixedRows& rows,
                     int n_threads, double* out);

}  // namespace spinney::distance
