// Scores of AdaBoost: the weighted votes of its trees.
#pragma once

#include <cstddef>

#include "spinney/forest/forest.h"
#include "spinney/table/table.h"

namespace spinney::serving {

// Adds the scores of trees [first, last) to out[row * n_classes + class]. A tree votes with its
// weight for its most probable class. If `real`, it adds (K − 1) (log p_k − mean of log p) instead.
void add_votes(const forest::Forest& forest, const table::Table& table, const double* tree_weights,
               bool real, std::size_t first, std::size_t last, int n_threads, double* out);

}  // namespace spinney::serving
