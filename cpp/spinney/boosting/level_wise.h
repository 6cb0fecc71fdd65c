// Level-wise growth: all leaves of a level are split before those of the next.
#pragma once

#include "spinney/boosting/growth.h"

namespace spinney::boosting {

struct LevelWise {
  static bool before(const LeafRank& a, const LeafRank& b) {
    return a.depth < b.depth || (a.depth == b.depth && a.index < b.index);
  }
};

static_assert(GrowthOrder<LevelWise>);

}  // namespace spinney::boosting
