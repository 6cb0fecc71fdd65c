// Traversal of a tree with numeric splits by a block of rows. A layout describes the nodes:
//
//   Index                  of a node or leaf; 0 is the root
//   next(at, row)          the child that a row takes at node `at`
//   is_leaf(at, next)      whether `next`, the child taken at `at`, is a leaf
//   leaf(next)             the number of that leaf
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "spinney/common/dispatch.h"
#include "spinney/forest/traversal.h"

namespace spinney::serving {

template <class T, class Value>
concept NodeLayout = requires(const T layout, typename T::Index at, const Value* row) {
  { layout.next(at, row) } -> std::same_as<typename T::Index>;
  { layout.is_leaf(at, at) } -> std::same_as<bool>;
  { layout.leaf(at) } -> std::same_as<std::uint32_t>;
};

// leaf[i] = leaf of row i, for n >= n_lanes rows that are `stride` values apart. Several rows
// descend at a time, so that their loads overlap; a row that reaches its leaf makes room for the
// next one.
template <std::size_t n_lanes, class Layout, class Value>
  requires NodeLayout<Layout, Value>
void descend_in_lanes(const Layout& layout, const Value* rows, std::size_t stride, std::size_t n,
                      std::uint32_t* leaf) {
  std::array<typename Layout::Index, n_lanes> at{};
  std::array<const Value*, n_lanes> row;
  std::array<std::size_t, n_lanes> number;
  for (std::size_t i = 0; i < n_lanes; ++i) {
    row[i] = rows + i * stride;
    number[i] = i;
  }
  std::size_t n_started = n_lanes;
  std::size_t n_idle = 0;
  const auto step = [&](std::size_t i) SPINNEY_INLINE_LAMBDA {
    const auto last = at[i];
    const auto next = layout.next(last, row[i]);
    at[i] = next;
    if (!layout.is_leaf(last, next)) [[likely]]
      return;
    at[i] = 0;
    if (number[i] >= n) return;  // an idle lane: it repeats its last row
    leaf[number[i]] = layout.leaf(next);
    number[i] = n_started;
    if (n_started < n) {
      row[i] = rows + n_started++ * stride;
    } else {
      ++n_idle;
    }
  };
  // One step of each lane. GCC does not unroll this as a loop.
  const auto step_all = [&]<std::size_t... i>(std::index_sequence<i...>)
                            SPINNEY_INLINE_LAMBDA { (step(i), ...); };
  while (n_idle < n_lanes) step_all(std::make_index_sequence<n_lanes>());
}

// at[i] = node of row i after n_levels steps. A leaf must be a node that leads to itself. For trees
// of a few levels: no step depends on whether a row has reached its leaf.
template <class Layout, class Value>
void descend_by_level(const Layout& layout, const Value* rows, std::size_t stride, std::size_t n,
                      std::size_t n_levels, std::uint32_t* at) {
  std::fill(at, at + n, 0U);
  for (std::size_t level = 0; level < n_levels; ++level) {
    const Value* row = rows;
    for (std::size_t i = 0; i < n; ++i, row += stride) at[i] = layout.next(at[i], row);
  }
}

}  // namespace spinney::serving
