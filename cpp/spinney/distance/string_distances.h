// All distances between two sets of strings.
#pragma once

#include "spinney/distance/closer.h"

namespace spinney::distance {

// out[i * rows.n_rows + j] is the distance of query i to row j.
void string_distances(StringMetric metric, const Strings& queries, const Strings& rows,
                      int n_threads, double* out);

}  // namespace spinney::distance
