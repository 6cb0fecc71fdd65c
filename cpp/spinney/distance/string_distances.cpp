#include "spinney/distance/string_distances.h"

#include "spinney/common/parallel.h"

namespace spinney::distance {

using common::parallel_for;
using common::worthwhile_threads;

void string_distances(StringMetric metric, const Strings& queries, const Strings& rows,
                      int n_threads, double* out) {
  const double pairs = static_cast<double>(queries.n_rows) * static_cast<double>(rows.n_rows);
  parallel_for(
      queries.n_rows, worthwhile_threads(100 * pairs, n_threads), [&](std::size_t query, int) {
        double* const distances = out + query * rows.n_rows;
        const EditPattern pattern(queries[query]);
        for (std::size_t row = 0; row < rows.n_rows; ++row) {
          distances[row] = static_cast<double>(metric == StringMetric::edit
                                                   ? pattern.distance(rows[row])
                                                   : hamming_distance(queries[query], rows[row]));
        }
      });
}

}  // namespace spinney::distance
