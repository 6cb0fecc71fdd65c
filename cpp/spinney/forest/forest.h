// A fitted forest. Boosted models, random forests and AdaBoost all hold their trees in one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "spinney/forest/compact_tree.h"

namespace spinney::forest {

struct Forest {
  LeafShape shape;
  std::vector<std::int32_t> n_categories;  // of each feature, 0 for a numeric one
  std::vector<CompactTree> trees;

  std::size_t n_features() const { return n_categories.size(); }
};

}  // namespace spinney::forest
