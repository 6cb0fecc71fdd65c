// Small trees with the questions about set columns answered: for each way in which settings answer
// a tree's questions about these columns, a smaller tree without them. There are few of those (a
// tree asks about a column a few times), and they are trees like others, so that BlockScorer sends
// rows through them many at a time.
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
  std::vector<std::size_t> source;     // of each tree: the tree that it was
  std::vector<std::size_t> run_start;  // where its runs begin, and where the last ones end
  std::vector<Run> runs;               // of the settings that it answers for
};

// Of the settings [first, first + n). Empty if the trees are too large for that, or the smaller
// ones too many to pay.
DecidedTrees decide_trees(const TreeSum& sum, const Settings& settings, std::size_t first,
                          std::size_t n, std::size_t n_rows);

}  // namespace spinney::explain
