// Trees without their splits on set columns: one for each combination of sides that the settings
// take at these splits. There are few combinations, as a tree splits on a column a few times.
// BlockScorer scores these trees like others, many rows at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/explain/dependence.h"

namespace spinney::explain {

struct DecidedTrees {
  struct Run {  // settings [from, to)
    std::uint32_t from;
    std::uint32_t to;
  };

  forest::Forest forest;
  std::vector<std::size_t> source;     // of each tree: the original tree
  std::vector<std::size_t> run_start;  // where its runs begin, and where the last ones end
  std::vector<Run> runs;               // of the settings that it is for
};

// For the settings [first, first + n). Empty if the trees are too large, or the result too many
// trees.
DecidedTrees decide_trees(const TreeSum& sum, const Settings& settings, std::size_t first,
                          std::size_t n, std::size_t n_rows);

}  // namespace spinney::explain
