// Best-first growth: the leaf with the largest gain is split next.
#pragma once

#include "spinney/boosting/growth.h"

namespace spinney::boosting {

struct BestFirst {
  static bool before(const LeafRank& a, const LeafRank& b) {
    return a.gain > b.gain || (a.gain == b.gain && a.index < b.index);
  }
};

static_assert(GrowthOrder<BestFirst>);

}  // namespace spinney::boosting
