#include "spinney/distance/nearest.h"

#include "spinney/common/check.h"
#include "spinney/common/parallel.h"

namespace spinney {

void select_nearest(const double* matrix, std::size_t n_rows, std::size_t n_columns, std::size_t k,
                    int n_threads, double* distances, std::int64_t* columns) {
  if (k == 0 || k > n_columns) throw InputError("nearest: k must be from 1 to the number of rows");
  const double cells = static_cast<double>(n_rows) * static_cast<double>(n_columns);
  parallel_for(n_rows, worthwhile_threads(cells, n_threads), [&](std::size_t row, int) {
    Nearest nearest(k);
    nearest.offer_block(matrix + row * n_columns, n_columns, 0);
    nearest.drain(distances + row * k, columns + row * k);
  });
}

}  // namespace spinney
