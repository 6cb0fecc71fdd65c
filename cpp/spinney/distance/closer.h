// Triplet comparisons in batches: is x closer to a than to b? Triplet i compares row x[i] of `rows`
// with rows a[i] and b[i] of `pivots`. The result of a tie is false.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "spinney/distance/edit_distance.h"

namespace spinney::distance {

enum class VectorMetric { euclidean, manhattan, chebyshev, cosine };
enum class StringMetric { edit, hamming };

// A row-major matrix.
struct Vectors {
  const double* values;
  std::size_t n_rows;
  std::size_t n_features;
};

// String i is characters[starts[i]] … characters[starts[i + 1] - 1].
struct Strings {
  const std::uint32_t* characters;
  const std::int64_t* starts;
  std::size_t n_rows;

  Characters operator[](std::size_t i) const {
    return {characters + starts[i], characters + starts[i + 1]};
  }
};

struct Triplets {
  std::span<const std::int64_t> x, a, b;
};

// Rows must have length one or zero if the metric is `cosine`.
void find_closer(VectorMetric metric, const Vectors& rows, const Vectors& pivots,
                 const Triplets& triplets, int n_threads, bool* out);
void find_closer(StringMetric metric, const Strings& rows, const Strings& pivots,
                 const Triplets& triplets, int n_threads, bool* out);

}  // namespace spinney::distance
