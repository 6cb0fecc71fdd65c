#include "spinney/forest/check_tree.h"

#include <functional>
#include <limits>
#include <vector>

#include "spinney/common/check.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::forest;

namespace {

// A numeric split at the root, a categorical one on its right, and three leaves.
struct Arrays {
  std::vector<std::int64_t> left{1, -1, 3, -1, -1};
  std::vector<std::int64_t> right{2, -1, 4, -1, -1};
  std::vector<std::int64_t> feature{0, -2, 1, -2, -2};
  std::vector<double> threshold{0.5, -2, 0, -2, -2};
  std::vector<std::uint8_t> missing_left{0, 0, 1, 0, 0};
  std::vector<std::int64_t> category_start{-1, -1, 0, -1, -1};
  std::vector<std::uint32_t> category_bits{1, 3, 2, 3};  // two words for each of the two sets
  std::vector<double> impurity{0.5, 0, 0.5, 0, 0};
  std::vector<std::int64_t> n_rows{4, 2, 2, 1, 1};
  std::vector<double> weight{4, 2, 2, 1, 1};
  std::vector<double> value{1, 0, 2, 1, 3};

  TreeView splits() const {
    return {left, right, feature, threshold, missing_left, category_start, category_bits};
  }
};

Forest empty_forest() {
  Forest forest;
  forest.n_categories = {0, 40};
  return forest;
}

void append(const Arrays& arrays, Forest& forest) {
  append_tree({arrays.splits(), arrays.impurity, arrays.n_rows, arrays.weight, arrays.value},
              forest);
}

template <class Body>
bool throws(const Body& body) {
  try {
    body();
  } catch (const common::InputError&) {
    return true;
  }
  return false;
}

}  // namespace

TEST(a_consistent_tree_is_appended) {
  const Arrays arrays;
  Forest forest = empty_forest();
  check_tree(arrays.splits());
  check_tree(arrays.splits(), forest.n_categories);
  append(arrays, forest);
  CHECK(forest.trees.size() == 1);
  const Tree tree = expand(forest.trees[0], forest.shape, forest.n_categories);
  CHECK(tree.size() == 5 && tree.feature[0] == 0 && tree.category_bits == arrays.category_bits);
}

TEST(inconsistent_splits_are_rejected) {
  const std::vector<std::int32_t> n_categories{0, 40};
  const std::vector<std::function<void(Arrays&)>> damages{
      [](Arrays& a) { a.left[0] = 5; },             // no such node
      [](Arrays& a) { a.left[2] = 2; },             // a cycle
      [](Arrays& a) { a.left[2] = 0; },             // a child before its parent
      [](Arrays& a) { a.left[2] = 4; },             // two parents
      [](Arrays& a) { a.left[1] = 3; },             // one child
      [](Arrays& a) { a.right[0] = -1; },           // the same, at the root
      [](Arrays& a) { a.feature[0] = -1; },         // no feature
      [](Arrays& a) { a.feature[0] = 2; },          // an unknown feature
      [](Arrays& a) { a.category_start[2] = 4; },   // a set beyond the bits
      [](Arrays& a) { a.category_start[2] = 3; },   // a set that is cut off
      [](Arrays& a) { a.category_start[2] = -7; },  // negative
      [](Arrays& a) { a.category_start[0] = 0; },   // categories of a numeric feature
      [](Arrays& a) { a.threshold.pop_back(); },    // arrays of different length
      [](Arrays& a) { a.missing_left.clear(); },    //
      [](Arrays& a) { a.left.clear(); },            // no nodes
      [](Arrays& a) { a.right.push_back(-1); },
  };
  for (const auto& damage : damages) {
    Arrays arrays;
    damage(arrays);
    Forest forest = empty_forest();
    CHECK(throws([&] { check_tree(arrays.splits(), n_categories); }));
    CHECK(throws([&] { append(arrays, forest); }));
    CHECK(forest.trees.empty());
  }
}

TEST(inconsistent_statistics_are_rejected) {
  const std::vector<std::function<void(Arrays&)>> damages{
      [](Arrays& a) { a.impurity.pop_back(); },
      [](Arrays& a) { a.n_rows.push_back(1); },
      [](Arrays& a) { a.weight.clear(); },
      [](Arrays& a) { a.value.pop_back(); },
      [](Arrays& a) { a.category_bits.resize(3); },  // one of the two sets is cut off
      [](Arrays& a) { a.threshold[0] = std::numeric_limits<double>::quiet_NaN(); },
  };
  for (const auto& damage : damages) {
    Arrays arrays;
    damage(arrays);
    Forest forest = empty_forest();
    CHECK(throws([&] { append(arrays, forest); }));
    CHECK(forest.trees.empty());
  }
}
