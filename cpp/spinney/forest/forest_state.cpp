#include "spinney/forest/forest_state.h"

#include <array>
#include <cstring>

#include "spinney/common/check.h"
#include "spinney/common/parallel.h"
#include "spinney/forest/check_tree.h"

namespace spinney::forest {

using common::parallel_for;

namespace {

static_assert(sizeof(CompactNode) == 16 && alignof(CompactNode) == alignof(std::uint32_t));

// Calls body with each array of a tree and its position in the state, in the order of visit_arrays.
template <class Tree_, class State, class Body>
void pair_up(Tree_& tree, State& state, const Body& body) {
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
  const bool labels = criterion::is_classification(shape.criterion);
  if (shape.n_outputs == 0 || shape.n_outputs > most ||
      shape.n_classes.size() != (labels ? shape.n_outputs : 0) || shape.width() > most) {
    throw common::InputError("a forest's outputs and classes do not fit together");
  }
  for (const std::uint32_t n : shape.n_classes) {
    if (n == 0) throw common::InputError("a forest's output has no classes");
  }
  for (const std::int32_t n : forest.n_categories) {
    if (n < 0) throw common::InputError("a forest's column has fewer than no categories");
  }
}

}  // namespace

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

ForestView view_of(const ForestState& state) {
  ForestView out;
  out.sizes = state.sizes;
  out.nodes = state.nodes;
  pair_up(out, state, [](auto& to, const auto& from) { to = from; });
  return out;
}

void from_state(const ForestView& state, int n_threads, Forest& forest,
                const std::shared_ptr<const void>& owner) {
  constexpr std::size_t n_arrays = 14;
  const auto require = [](bool holds) {
    if (!holds) throw common::InputError("the arrays of a forest do not fit together");
  };
  check_shape(forest);
  require(state.sizes.size() % n_arrays == 0);
  const std::size_t n_trees = state.sizes.size() / n_arrays;
  // Where each tree's part of each array begins; the parts must be all that there is.
  std::array<std::size_t, n_arrays> lengths{state.nodes.size() / 4};
  require(state.nodes.size() % 4 == 0);
  std::size_t array = 1;
  CompactTree none;
  pair_up(none, state, [&](const auto&, const auto& from) { lengths[array++] = from.size(); });
  std::vector<std::size_t> starts(state.sizes.size());
  for (std::size_t a = 0; a < n_arrays; ++a) {
    std::size_t used = 0;
    for (std::size_t t = 0; t < n_trees; ++t) {
      starts[t * n_arrays + a] = used;
      const std::uint64_t size = state.sizes[t * n_arrays + a];
      require(size <= lengths[a] - used);
      used += size;
    }
    require(used == lengths[a]);
  }
  std::vector<CompactTree> trees(n_trees);
  parallel_for(n_trees, n_threads, [&](std::size_t t, int) {
    CompactTree& tree = trees[t];
    const std::uint64_t* const size = state.sizes.data() + t * n_arrays;
    const std::size_t* const start = starts.data() + t * n_arrays;
    const auto take = [&]<class T>(TreeArray<T>& to, std::span<const T> part) {
      if (owner != nullptr) {
        to.view(part);
      } else {
        to.append(part.begin(), part.end());
      }
    };
    const auto* const nodes = reinterpret_cast<const CompactNode*>(state.nodes.data());
    take(tree.nodes, std::span<const CompactNode>(nodes + start[0], size[0]));
    std::size_t a = 1;
    pair_up(tree, state, [&](auto& to, const auto& from) {
      take(to, from.subspan(start[a], size[a]));
      ++a;
    });
    tree.owner = owner;
    check_tree(tree, forest.shape, forest.n_categories);
  });
  forest.trees = std::move(trees);
}

}  // namespace spinney::forest
