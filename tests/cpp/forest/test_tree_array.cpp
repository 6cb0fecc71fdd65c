#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "spinney/forest/preorder.h"
#include "spinney/forest/tree_array.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::forest;

namespace {

std::vector<int> contents(const TreeArray<int>& array) { return {array.begin(), array.end()}; }

}  // namespace

TEST(tree_arrays_own_appended_values) {
  TreeArray<int> array;
  CHECK(array.empty());
  for (int i = 0; i < 100; ++i) array.push_back(i);
  array.append(2, 7);
  CHECK(array.size() == 102 && array[99] == 99 && array[101] == 7);
  const TreeArray<int> copy = array;
  CHECK(copy == array && copy.data() != array.data());
  const int* const before = array.data();
  const TreeArray<int> moved = std::move(array);
  CHECK(moved.data() == before && moved == copy);
}

TEST(views_are_copied_before_they_change) {
  const std::vector<int> elsewhere{1, 2, 3};
  TreeArray<int> array;
  array.push_back(9);
  array.view(elsewhere);
  CHECK(array.data() == elsewhere.data() && array.size() == 3);
  const TreeArray<int> copy = array;
  CHECK(copy.data() != elsewhere.data() && copy == array);
  TreeArray<int> assigned;
  assigned = std::move(array);
  CHECK(assigned.data() == elsewhere.data());
  assigned.edit()[0] = 5;
  assigned.push_back(4);
  CHECK((contents(assigned) == std::vector<int>{5, 2, 3, 4}));
  CHECK((elsewhere == std::vector<int>{1, 2, 3}));
}

TEST(two_bits_per_node_give_the_children) {
  // 0: (1: leaf, leaf), (2: (3: leaf, leaf), leaf)
  const std::array<std::uint8_t, 4> bits{0, 3, 2, 3};
  std::array<std::int32_t, 8> children{};
  number_children(bits, children.data());
  CHECK((children == std::array<std::int32_t, 8>{1, 2, ~0, ~1, 3, ~4, ~2, ~3}));
  const std::array<std::uint8_t, 2> endless{0, 0};  // more children than there are nodes
  number_children(endless, children.data());
  CHECK(children[0] == 1 && children[1] == 0 && children[2] == 2 && children[3] == 0);
}
