// Quantile forests (Meinshausen 2006): quantiles of the targets of the training rows that share
// leaves with a row; each tree's leaf has the same weight.
#pragma once

#include <span>

#include "spinney/forest/forest.h"

namespace spinney::serving {

// targets: [output][row] of the training rows; weights: theirs, or null. out: [row][output][q].
void predict_quantiles(const forest::Forest& forest, const table::Table& table,
                       const double* targets, std::size_t n_targets, const double* weights,
                       std::span<const double> q, int n_threads, double* out);

}  // namespace spinney::serving
