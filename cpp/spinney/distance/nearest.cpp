#include "spinney/distance/nearest.h"

#include "spinney/common/check.h"
#include "spinney/common/dispatch.h"
#include "spinney/common/parallel.h"

namespace spinney::distance {

using common::dispatch;
using common::parallel_for;
using common::worthwhile_threads;

// Most values are not below the bound, so sixteen are compared at once.
namespace {

SPINNEY_INLINE std::size_t find_below_kernel(const double* values, std::size_t i, std::size_t n,
                                             double bound) {
  constexpr std::size_t width = 16;
  for (; i + width <= n; i += width) {
    int n_below = 0;
    for (std::size_t j = 0; j < width; ++j) n_below += values[i + j] < bound;
    if (n_below != 0) break;
  }
  while (i < n && !(values[i] < bound)) ++i;
  return i;
}

}  // namespace

std::size_t find_below(const double* values, std::size_t i, std::size_t n, double bound) {
  return dispatch<find_below_kernel>(values, i, n, bound);
}

void Nearest::add_block(const double* distances, std::size_t n, RowIndex first) {
  std::size_t i = 0;
  for (; i < n && !is_full(); ++i) {
    const bool is_not_nan = distances[i] == distances[i];
    add(is_not_nan ? distances[i] : std::numeric_limits<double>::infinity(),
        first + static_cast<RowIndex>(i));
  }
  // Indices ascend, so a row at the distance of the worst cannot replace it.
  while ((i = find_below(distances, i, n, worst())) < n) {
    add(distances[i], first + static_cast<RowIndex>(i));
    ++i;
  }
}

void select_nearest(const double* matrix, std::size_t n_rows, std::size_t n_columns, std::size_t k,
                    int n_threads, double* distances, std::int64_t* columns) {
  if (k == 0 || k > n_columns) {
    throw common::InputError("nearest: k must be from 1 to the number of columns");
  }
  const double cells = static_cast<double>(n_rows) * static_cast<double>(n_columns);
  parallel_for(n_rows, worthwhile_threads(cells, n_threads), [&](std::size_t row, int) {
    Nearest nearest(k);
    nearest.add_block(matrix + row * n_columns, n_columns, 0);
    nearest.drain(distances + row * k, columns + row * k);
  });
}

}  // namespace spinney::distance
