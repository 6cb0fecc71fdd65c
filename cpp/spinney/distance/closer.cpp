#include "spinney/distance/closer.h"

#include <algorithm>

#include "spinney/common/check.h"
#include "spinney/common/dispatch.h"
#include "spinney/common/parallel.h"
#include "spinney/distance/vector_distance.h"

namespace spinney::distance {

using common::dispatch;
using common::parallel_for;
using common::worthwhile_threads;

namespace {

constexpr std::size_t block_length = 512;

// Row indices come from Python, so an index out of range would read outside the array.
void check_rows(std::span<const std::int64_t> rows, std::size_t n_rows) {
  const bool inside = std::all_of(rows.begin(), rows.end(), [n_rows](std::int64_t row) {
    return static_cast<std::uint64_t>(row) < n_rows;
  });
  if (!inside) throw common::InputError("closer: a row index is out of range");
}

void check(const Triplets& triplets, std::size_t n_rows, std::size_t n_pivots) {
  if (triplets.a.size() != triplets.x.size() || triplets.b.size() != triplets.x.size()) {
    throw common::InputError("closer: x, a and b must have equal lengths");
  }
  check_rows(triplets.x, n_rows);
  check_rows(triplets.a, n_pivots);
  check_rows(triplets.b, n_pivots);
}

// Runs body(first, last) over blocks of triplets. `nanoseconds` is the cost of one triplet.
template <class Body>
void for_blocks(std::size_t n, double nanoseconds, int n_threads, const Body& body) {
  const std::size_t n_blocks = (n + block_length - 1) / block_length;
  const int n_workers = worthwhile_threads(static_cast<double>(n) * nanoseconds, n_threads);
  parallel_for(n_blocks, n_workers, [&](std::size_t block, int) {
    body(block * block_length, std::min(n, (block + 1) * block_length));
  });
}

struct VectorTask {
  const double* rows;
  const double* pivots;
  std::size_t n_features;
  const std::int64_t* x;
  const std::int64_t* a;
  const std::int64_t* b;
  bool* out;
};

using IsCloser = bool(const double*, const double*, const double*, std::size_t);

template <IsCloser is_closer_by>
SPINNEY_INLINE void compare_kernel(const VectorTask& task, std::size_t first, std::size_t last) {
  const std::size_t n = task.n_features;
  for (std::size_t i = first; i < last; ++i) {
    task.out[i] = is_closer_by(task.rows + static_cast<std::size_t>(task.x[i]) * n,
                               task.pivots + static_cast<std::size_t>(task.a[i]) * n,
                               task.pivots + static_cast<std::size_t>(task.b[i]) * n, n);
  }
}

}  // namespace

void find_closer(VectorMetric metric, const Vectors& rows, const Vectors& pivots,
                 const Triplets& triplets, int n_threads, bool* out) {
  if (rows.n_features != pivots.n_features) {
    throw common::InputError("closer: rows and pivots must have equally many features");
  }
  check(triplets, rows.n_rows, pivots.n_rows);
  const VectorTask task{rows.values,
                        pivots.values,
                        rows.n_features,
                        triplets.x.data(),
                        triplets.a.data(),
                        triplets.b.data(),
                        out};
  const double nanoseconds = 8 + 0.4 * static_cast<double>(rows.n_features);
  for_blocks(triplets.x.size(), nanoseconds, n_threads, [&](std::size_t first, std::size_t last) {
    switch (metric) {
      case VectorMetric::manhattan:
        return dispatch<compare_kernel<is_closer<Manhattan>>>(task, first, last);
      case VectorMetric::chebyshev:
        return dispatch<compare_kernel<is_closer<Chebyshev>>>(task, first, last);
      case VectorMetric::cosine:
        return dispatch<compare_kernel<is_closer_in_angle>>(task, first, last);
      default:
        return dispatch<compare_kernel<is_closer<Euclidean>>>(task, first, last);
    }
  });
}

void find_closer(StringMetric metric, const Strings& rows, const Strings& pivots,
                 const Triplets& triplets, int n_threads, bool* out) {
  check(triplets, rows.n_rows, pivots.n_rows);
  const auto distance = metric == StringMetric::edit ? edit_distance : hamming_distance;
  for_blocks(triplets.x.size(), 500, n_threads, [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      const Characters x = rows[static_cast<std::size_t>(triplets.x[i])];
      out[i] = distance(x, pivots[static_cast<std::size_t>(triplets.a[i])]) <
               distance(x, pivots[static_cast<std::size_t>(triplets.b[i])]);
    }
  });
}

}  // namespace spinney::distance
