#include "spinney/neighbors/hnsw_kernels.h"

#include <algorithm>
#include <utility>

#include "spinney/common/random.h"

namespace spinney::neighbors {

namespace {

// Copies of a vector are all the same to it, and a quarter of the links is for them. The draw of
// the slots decides which: if all copies chose the same few, the others would be out of reach.
template <class Layer>
std::size_t choose_copies(const Layer& layer, Slot centre, std::span<const Key> copies,
                          std::size_t most, Key* out) {
  const std::size_t n = std::min(most, copies.size());
  std::vector<std::pair<std::uint64_t, Key>> drawn;
  for (const Key copy : copies) {
    drawn.emplace_back(common::combine(centre, layer.slot(number_of(copy))), copy & ~Key{1});
  }
  std::partial_sort(drawn.begin(), drawn.begin() + static_cast<std::ptrdiff_t>(n), drawn.end());
  for (std::size_t i = 0; i < n; ++i) out[i] = drawn[i].second;
  return n;
}

// Chooses among sorted candidates; keys into `out`, how many is returned.
template <class Space, class Layer>
SPINNEY_INLINE std::size_t choose_links(const Space& space, const Layer& layer, Slot centre,
                                        const Key* candidates, std::size_t n, std::size_t most,
                                        const LinkRule& rule, WalkSpace& walk, Key* out) {
  if (walk.chosen.size() < most + 4) walk.chosen.resize(most + 4);
  Slot* const chosen = walk.chosen.data();
  std::size_t n_copies = 0;
  while (n_copies < n && distance_of(candidates[n_copies]) + rule.shift <= rule.same) ++n_copies;
  std::size_t n_out = 0, n_chosen = 0;
  if (n_copies > 0) {
    const std::size_t room = std::max<std::size_t>(1, most / 4);
    n_out = choose_copies(layer, centre, {candidates, n_copies}, room, out);
    // To the others they are one.
    for (std::size_t j = 0; j < 4; ++j) chosen[j] = layer.slot(number_of(out[0]));
    n_chosen = 1;
  }
  for (std::size_t i = n_copies; i < n && n_out < most; ++i) {
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
    out[n_out++] = candidates[i] & ~Key{1};
    chosen[n_chosen++] = slot;
    // Read in fours: what is not there yet repeats the last.
    for (std::size_t j = n_chosen; j % 4 != 0; ++j) chosen[j] = slot;
  }
  return n_out;
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
      row.resize(choose_links(space, layer, slot, walk.nearest.data(), walk.n_nearest, rule.n_links,
                              rule, walk, row.data()));
      best = walk.nearest[0] & ~Key{1};
    }
    entry = key_of(distance_of(best), graph.upper.slots[number_of(best)]);
  }
  const GroundLayer layer{graph};
  walk_layer(space, layer, graph.size, query, {&entry, 1}, rule.ef, walk);
  // Those of the batch before it are not in the graph yet: without them a batch that lies apart
  // from all else would be linked to strangers only.
  walk.found.clear();
  for (Slot first = static_cast<Slot>(graph.size); first < slot; first += 4) {
    const std::size_t n = std::min<std::size_t>(4, slot - first);
    const auto last = static_cast<Slot>(n - 1);
    const Slot four[4] = {first, first + std::min<Slot>(1, last), first + std::min<Slot>(2, last),
                          first + last};
    float distances[4];
    space.distances(query, four, distances);
    for (std::size_t i = 0; i < n; ++i) {
      const Key key = key_of(distances[i], four[i]);
      if (walk.n_nearest < rule.ef || key < walk.nearest[walk.n_nearest - 1]) {
        walk.found.push_back(key);
      }
    }
  }
  const Key* candidates = walk.nearest.data();
  std::size_t n_candidates = walk.n_nearest;
  if (!walk.found.empty()) {
    for (std::size_t i = 0; i < walk.n_nearest; ++i) {
      walk.found.push_back(walk.nearest[i] & ~Key{1});
    }
    n_candidates = std::min(walk.found.size(), rule.ef);
    std::partial_sort(walk.found.begin(),
                      walk.found.begin() + static_cast<std::ptrdiff_t>(n_candidates),
                      walk.found.end());
    candidates = walk.found.data();
  }
  out.ground.resize(rule.n_links);
  out.ground.resize(choose_links(space, layer, slot, candidates, n_candidates, rule.n_links, rule,
                                 walk, out.ground.data()));
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
  const std::size_t n_kept = choose_links(space, layer, layer.slot(number), walk.found.data(), n,
                                          out.size(), rule, walk, kept);
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

}  // namespace spinney::neighbors
