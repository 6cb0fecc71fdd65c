#include "spinney/neighbors/hnsw_kernels.h"

#include <algorithm>

namespace spinney {

namespace {

// Chooses among sorted candidates; numbers into `out`, how many is returned.
template <class Space, class Layer>
SPINNEY_INLINE std::size_t choose_links(const Space& space, const Layer& layer,
                                        const Key* candidates, std::size_t n, std::size_t most,
                                        const LinkRule& rule, WalkSpace& walk, Key* out) {
  if (walk.chosen.size() < most + 4) walk.chosen.resize(most + 4);
  Slot* const chosen = walk.chosen.data();
  std::size_t n_chosen = 0;
  for (std::size_t i = 0; i < n && n_chosen < most; ++i) {
    const float distance = distance_of(candidates[i]) + rule.shift;
    const Slot slot = layer.slot(number_of(candidates[i]));
    bool keep = true;
    for (std::size_t j = 0; j < n_chosen && keep; j += 4) {
      float to_chosen[4];
      space.distances(space.row(slot), chosen + j, to_chosen);
      for (const float other : to_chosen) {
        keep = keep && rule.alpha * (other + rule.shift) > distance;
      }
    }
    if (!keep) continue;
    out[n_chosen] = candidates[i] & ~Key{1};
    chosen[n_chosen++] = slot;
    // Read in fours: what is not there yet repeats the last.
    for (std::size_t j = n_chosen; j % 4 != 0; ++j) chosen[j] = slot;
  }
  return n_chosen;
}

template <class Space>
SPINNEY_INLINE void nearest(const Space& space, const HnswGraph& graph,
                            const typename Space::Value* query, std::size_t ef,
                            const std::uint8_t* allowed, WalkSpace& walk) {
  const Key entry = ground_entry(space, graph, query, walk);
  const GroundLayer layer{graph};
  if (allowed == nullptr) {
    walk_layer(space, layer, graph.size, query, {&entry, 1}, ef, walk);
  } else {
    walk_allowed(space, layer, graph.size, query, entry, ef, allowed, walk);
  }
}

template <class Space>
SPINNEY_INLINE void links(const Space& space, const HnswGraph& graph, Slot slot, std::size_t level,
                          const LinkRule& rule, WalkSpace& walk, NewLinks& out) {
  const auto* const query = space.row(slot);
  out.upper.clear();
  out.upper.resize(level);
  Key entry;
  if (graph.top == no_slot) {
    entry = key_of(space.distance(query, space.row(graph.ground)), graph.ground);
  } else {
    const std::size_t highest = std::min(level, graph.top_level());
    Key best = descend_to(space, graph, query, highest, walk);
    for (std::size_t at = highest; at > 0; --at) {
      const UpperLayer layer{graph.upper, at};
      walk_layer(space, layer, graph.upper.size(), query, {&best, 1}, rule.ef, walk);
      std::vector<Key>& row = out.upper[at - 1];
      row.resize(rule.n_links);
      row.resize(choose_links(space, layer, walk.nearest.data(), walk.n_nearest, rule.n_links, rule,
                              walk, row.data()));
      best = walk.nearest[0] & ~Key{1};
    }
    entry = key_of(distance_of(best), graph.upper.slots[number_of(best)]);
  }
  const GroundLayer layer{graph};
  walk_layer(space, layer, graph.size, query, {&entry, 1}, rule.ef, walk);
  out.ground.resize(rule.n_links);
  out.ground.resize(choose_links(space, layer, walk.nearest.data(), walk.n_nearest, rule.n_links,
                                 rule, walk, out.ground.data()));
}

template <class Space, class Layer>
SPINNEY_INLINE void prune(const Space& space, const Layer& layer, std::uint32_t number,
                          std::span<const std::uint32_t> candidates, const LinkRule& rule,
                          WalkSpace& walk, std::span<std::uint32_t> out) {
  const std::size_t n = candidates.size();
  walk.reserve(0, n);
  for (std::size_t i = 0; i < n; ++i) {
    walk.slots[i] = layer.slot(candidates[i]);
    space.prefetch(walk.slots[i]);
  }
  measure(space, space.row(layer.slot(number)), walk.slots.data(), n, walk.distances.data());
  walk.found.resize(n + out.size());
  for (std::size_t i = 0; i < n; ++i) walk.found[i] = key_of(walk.distances[i], candidates[i]);
  std::sort(walk.found.begin(), walk.found.begin() + static_cast<std::ptrdiff_t>(n));
  Key* const kept = walk.found.data() + n;
  const std::size_t n_kept =
      choose_links(space, layer, walk.found.data(), n, out.size(), rule, walk, kept);
  for (std::size_t i = 0; i < n_kept; ++i) out[i] = number_of(kept[i]);
  std::fill(out.begin() + static_cast<std::ptrdiff_t>(n_kept), out.end(), no_slot);
}

template <class Space>
SPINNEY_INLINE void scan(const Space& space, const typename Space::Value* query,
                         std::span<const Slot> slots, std::size_t k, std::vector<Key>& nearest) {
  for (std::size_t first = 0; first < slots.size(); first += 4) {
    const std::size_t n = std::min<std::size_t>(4, slots.size() - first);
    Slot four[4];
    float distances[4];
    for (std::size_t i = 0; i < 4; ++i) four[i] = slots[first + std::min(i, n - 1)];
    space.distances(query, four, distances);
    for (std::size_t i = 0; i < n; ++i) {
      const Key key = key_of(distances[i], four[i]);
      if (nearest.size() == k) {
        if (key >= nearest.back()) continue;
        nearest.pop_back();
      }
      nearest.insert(std::lower_bound(nearest.begin(), nearest.end(), key), key);
    }
  }
}

}  // namespace

#define SPINNEY_HNSW_KERNELS(Space)                                                                \
  SPINNEY_KERNEL void find_nearest(const Space& space, const HnswGraph& graph,                     \
                                   const Space::Value* query, std::size_t ef,                      \
                                   const std::uint8_t* allowed, WalkSpace& walk) {                 \
    nearest(space, graph, query, ef, allowed, walk);                                               \
  }                                                                                                \
  SPINNEY_KERNEL void find_links(const Space& space, const HnswGraph& graph, Slot slot,            \
                                 std::size_t level, const LinkRule& rule, WalkSpace& walk,         \
                                 NewLinks& out) {                                                  \
    links(space, graph, slot, level, rule, walk, out);                                             \
  }                                                                                                \
  SPINNEY_KERNEL void prune_links(const Space& space, const HnswGraph& graph, bool of_posts,       \
                                  std::uint32_t number, std::span<const std::uint32_t> candidates, \
                                  const LinkRule& rule, WalkSpace& walk,                           \
                                  std::span<std::uint32_t> out) {                                  \
    if (of_posts) {                                                                                \
      prune(space, UpperLayer{graph.upper, 1}, number, candidates, rule, walk, out);               \
    } else {                                                                                       \
      prune(space, GroundLayer{graph}, number, candidates, rule, walk, out);                       \
    }                                                                                              \
  }                                                                                                \
  SPINNEY_KERNEL void scan_slots(const Space& space, const Space::Value* query,                    \
                                 std::span<const Slot> slots, std::size_t k,                       \
                                 std::vector<Key>& nearest) {                                      \
    scan(space, query, slots, k, nearest);                                                         \
  }

SPINNEY_HNSW_KERNELS(EuclideanSpace)
SPINNEY_HNSW_KERNELS(ProductSpace)
SPINNEY_HNSW_KERNELS(CodeSpace)

#undef SPINNEY_HNSW_KERNELS

}  // namespace spinney
