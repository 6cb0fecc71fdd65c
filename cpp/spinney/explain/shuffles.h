// Predictions of a sum over trees for rows with shuffled columns, one group of columns at a time.
//
// If the path of a row through a tree has no split on a group's columns, its leaf does not depend
// on them. Else the paths separate at the first such split. All groups and shuffles thus cost
// little more than the splits on one path.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/explain/dependence.h"

namespace spinney::explain {

struct Shuffles {
  std::vector<std::vector<std::uint32_t>> groups;  // columns that are shuffled together
  std::size_t n_repeats = 0;
  const std::int64_t* orders = nullptr;  // [repeat][row]: the row whose values it gets
};

// Adds to out[row][score][group][repeat].
void score_shuffles(const TreeSum& sum, const table::Table& table, const Shuffles& shuffles,
                    int n_threads, double* out);

}  // namespace spinney::explain
