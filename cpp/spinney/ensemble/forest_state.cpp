#include "spinney/ensemble/forest_state.h"

#include <cstring>

#include "spinney/common/check.h"

namespace spinney {
namespace {

static_assert(sizeof(CompactNode) == 16);

// Calls body with each array of a tree and its place in the state, in the order of visit_arrays.
template <class Tree_, class Body>
void pair_up(Tree_& tree, ForestState& state, const Body& body) {
  body(tree.thresholds, state.thresholds);
  body(tree.leaf_rows, state.leaf_rows);
  body(tree.leaf_weight, state.leaf_weight);
  body(tree.leaf_weight_exact, state.leaf_weight_exact);
  body(tree.leaf_class, state.leaf_class);
  body(tree.mixed_counts, state.mixed_counts);
  body(tree.values, state.values);
  body(tree.leaf_impurity, state.leaf_impurity);
  body(tree.inner_value, state.inner_value);
  body(tree.inner_impurity, state.inner_impurity);
  body(tree.category_bits, state.category_bits);
  body(tree.members, state.members);
  body(tree.member_start, state.member_start);
}

// Numbers that are multiplied with others below, and must not wrap around.
void check_shape(const Forest& forest) {
  constexpr std::size_t most = std::size_t{1} << 31;
  const LeafShape& shape = forest.shape;
  const bool labels = is_classification(shape.criterion);
  if (shape.n_outputs == 0 || shape.n_outputs > most ||
      shape.n_classes.size() != (labels ? shape.n_outputs : 0) || shape.width() > most) {
    throw InputError("a forest's outputs and classes do not fit together");
  }
  for (const std::uint32_t n : shape.n_classes) {
    if (n == 0) throw InputError("a forest's output has no classes");
  }
  for (const std::int32_t n : forest.n_categories) {
    if (n < 0) throw InputError("a forest's column has fewer than no categories");
  }
}

}  // namespace

std::size_t ForestState::nbytes() {
  std::size_t total = 0;
  visit([&]<class T>(const char*, const std::vector<T>& array) {
    total += array.size() * sizeof(T);
  });
  return total;
}

ForestState to_state(const Forest& forest) {
  ForestState state;
  for (const CompactTree& tree : forest.trees) {
    state.sizes.push_back(tree.nodes.size());
    const std::size_t at = state.nodes.size();
    state.nodes.resize(at + 4 * tree.nodes.size());
    if (!tree.nodes.empty()) {
      std::memcpy(state.nodes.data() + at, tree.nodes.data(), 16 * tree.nodes.size());
    }
    pair_up(tree, state, [&](const auto& from, auto& to) {
      state.sizes.push_back(from.size());
      to.insert(to.end(), from.begin(), from.end());
    });
  }
  return state;
}

void from_state(ForestState& state, Forest& forest) {
  constexpr std::size_t n_arrays = 14;
  const auto require = [](bool holds) {
    if (!holds) throw InputError("the arrays of a forest do not fit together");
  };
  check_shape(forest);
  require(state.sizes.size() % n_arrays == 0);
  std::vector<CompactTree> trees(state.sizes.size() / n_arrays);
  std::vector<std::size_t> used(n_arrays);
  for (std::size_t t = 0; t < trees.size(); ++t) {
    CompactTree& tree = trees[t];
    const std::uint64_t* size = state.sizes.data() + t * n_arrays;
    require(*size <= (state.nodes.size() - used[0]) / 4);
    tree.nodes.resize(*size);
    if (*size > 0) std::memcpy(tree.nodes.data(), state.nodes.data() + used[0], 16 * *size);
    used[0] += 4 * *size;
    std::size_t array = 1;
    pair_up(tree, state, [&](auto& to, const auto& from) {
      const std::uint64_t n = size[array];
      require(n <= from.size() - used[array]);
      const auto begin = from.begin() + static_cast<std::ptrdiff_t>(used[array]);
      to.assign(begin, begin + static_cast<std::ptrdiff_t>(n));
      used[array] += n;
      ++array;
    });
    check_tree(tree, forest.shape, forest.n_categories);
  }
  std::size_t array = 1;
  require(used[0] == state.nodes.size());
  CompactTree none;
  pair_up(none, state,
          [&](const auto&, const auto& from) { require(used[array++] == from.size()); });
  forest.trees = std::move(trees);
}

}  // namespace spinney
