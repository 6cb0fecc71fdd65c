// Predictions of a sum over trees for rows with other values in some columns.
//
// A *setting* has values for the columns that are *set*; a row keeps its values in all other
// columns. A row descends a tree once for all settings: a split on another column has the same side
// for all settings, a split on a set column separates them. Each leaf that a row can reach is thus
// reached once, with the settings (bits of a mask) that lead there.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/forest/forest.h"
#include "spinney/table/table.h"

namespace spinney::explain {

struct Settings {
  std::vector<std::uint32_t> features;  // the columns that are set, each once
  std::size_t n = 0;                    // settings
  const double* values = nullptr;       // [setting][feature]: codes for categories, NaN is missing
};

// How the leaves of a forest add up to scores.
struct TreeSum {
  const forest::Forest& forest;
  std::size_t n_trees;   // the first n_trees are used
  std::size_t n_scores;  // of a row
  bool one_each;         // tree t adds to score t % n_scores alone, else each adds to all
  bool hard_votes;
};

// out[setting][score] = sum over the rows of their scores.
void sum_settings(const TreeSum& sum, const table::Table& table, const Settings& settings,
                  int n_threads, double* out);

// out[row][setting][score].
void score_settings(const TreeSum& sum, const table::Table& table, const Settings& settings,
                    int n_threads, double* out);

}  // namespace spinney::explain
