// What a sum over trees says about rows when columns are shuffled, one group of columns at a time.
//
// A row that meets no question about a group's columns on its way through a tree ends in its own
// leaf, whatever their values. Where it does meet one, the ways part there at the earliest: so all
// groups and shuffles cost a tree little more than the questions on one way.
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
