#include "spinney/neighbors/hnsw_kernels.h"

#include <algorithm>
#include <utility>

#include "spinney/common/dispatch.h"
#include "spinney/common/random.h"

namespace spinney::neighbors {

using common::dispatch;

namespace {

// Equal vectors get at most a quarter of the links. A hash of the slots selects them: if all equal
// vectors linked to the same few, the others could not be reached.
template <class Layer>
std::size_t choose_copies(const Layer& layer, Slot centre, std::span<const Key> copies,
                          std::size_t most, Key* out) {
  const std::size_t n = std::min(most, copies.size());
  std::vector<std::pair<std::uint64_t, Key>> drawn;
  for (const Key copy : copies) {
    drawn.emplace_back(common::combine(centre, layer.slot(node_of(copy))), copy & ~Key{1});
  }
  std::partial_sort(drawn.begin(), drawn.begin() + static_cast<std::ptrdiff_t>(n), drawn.end());
  for (std::size_t i = 0; i < n; ++i) out[i] = drawn[i].second;
  return n;
}

// Selects links among sorted candidates. Writes their keys to `out` and returns their number.
template <class Space, class Layer>
SPINNEY_INLINE std::size_t choose_links(const Space& space, const Layer& layer, Slot centre,
                                        const Key* candidates, std::size_t n, std::size_t most,
                                        const LinkRule& rule, SearchScratch& scratch, Key* out) {
  if (scratch.chosen.size() < most + 4) scratch.chosen.resize(most + 4);
  Slot* const chosen = scratch.chosen.data();
  std::size_t n_copies = 0;
  while (n_copies < n && distance_of(candidates[n_copies]) + rule.shift <= rule.same) ++n_copies;
  std::size_t n_out = 0, n_chosen = 0;
  if (n_copies > 0) {
    const std::size_t room = std::max<std::size_t>(1, most / 4);
    n_out = choose_copies(layer, centre, {candidates, n_copies}, room, out);
    // One of the equal vectors stands for all in the comparisons below.
    for (std::size_t j = 0; j < 4; ++j) chosen[j] = layer.slot(node_of(out[0]));
    n_chosen = 1;
  }
  for (std::size_t i = n_copies; i < n && n_out < most; ++i) {
    const float distance = distance_of(candidates[i]) + rule.shift;
    const Slot slot = layer.slot(node_of(candidates[i]));
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
    // Slots are read four at a time, so the last one is repeated.
    for (std::size_t j = n_chosen; j % 4 != 0; ++j) chosen[j] = slot;
  }
  return n_out;
}

template <class Space>
SPINNEY_INLINE void nearest(const Space& space, const HnswGraph& graph,
                            const typename Space::Value* query, std::size_t ef,
                            const std::uint8_t* allowed, SearchScratch& scratch) {
  const Key entry = find_base_entry(space, graph, query, scratch);
  const BaseLayer layer{graph};
  if (allowed == nullptr) {
    search_layer(space, layer, graph.size, query, {&entry, 1}, ef, scratch);
  } else {
    search_allowed(space, layer, graph.size, query, entry, ef, allowed, scratch);
  }
}

template <class Space>
SPINNEY_INLINE void links(const Space& space, const HnswGraph& graph, Slot slot, std::size_t level,
                          const LinkRule& rule, SearchScratch& scratch, NewLinks& out) {
  const auto* const query = space.row(slot);
  out.upper.clear();
  out.upper.resize(level);
  Key entry;
  if (graph.entry_node == no_slot) {
    entry = key_of(space.distance(query, space.row(graph.base_entry)), graph.base_entry);
  } else {
    const std::size_t highest = std::min(level, graph.top_level());
    Key best = descend_to(space, graph, query, highest, scratch);
    for (std::size_t at = highest; at > 0; --at) {
      const UpperLayer layer{graph.upper, at};
      search_layer(space, layer, graph.upper.size(), query, {&best, 1}, rule.ef, scratch);
      std::vector<Key>& row = out.upper[at - 1];
      row.resize(rule.n_links);
      row.resize(choose_links(space, layer, slot, scratch.nearest.data(), scratch.n_nearest,
                              rule.n_links, rule, scratch, row.data()));
      best = scratch.nearest[0] & ~Key{1};
    }
    entry = key_of(distance_of(best), graph.upper.slots[node_of(best)]);
  }
  const BaseLayer layer{graph};
  search_layer(space, layer, graph.size, query, {&entry, 1}, rule.ef, scratch);
  // Earlier vectors of the batch are not in the graph yet. Without them, a batch far from the other
  // vectors would have no links within the batch.
  scratch.found.clear();
  for (Slot first = static_cast<Slot>(graph.size); first < slot; first += 4) {
    const std::size_t n = std::min<std::size_t>(4, slot - first);
    const auto last = static_cast<Slot>(n - 1);
    const Slot four[4] = {first, first + std::min<Slot>(1, last), first + std::min<Slot>(2, last),
                          first + last};
    float distances[4];
    space.distances(query, four, distances);
    for (std::size_t i = 0; i < n; ++i) {
      const Key key = key_of(distances[i], four[i]);
      if (scratch.n_nearest < rule.ef || key < scratch.nearest[scratch.n_nearest - 1]) {
        scratch.found.push_back(key);
      }
    }
  }
  const Key* candidates = scratch.nearest.data();
  std::size_t n_candidates = scratch.n_nearest;
  if (!scratch.found.empty()) {
    for (std::size_t i = 0; i < scratch.n_nearest; ++i) {
      scratch.found.push_back(scratch.nearest[i] & ~Key{1});
    }
    n_candidates = std::min(scratch.found.size(), rule.ef);
    std::partial_sort(scratch.found.begin(),
                      scratch.found.begin() + static_cast<std::ptrdiff_t>(n_candidates),
                      scratch.found.end());
    candidates = scratch.found.data();
  }
  out.base.resize(rule.n_links);
  out.base.resize(choose_links(space, layer, slot, candidates, n_candidates, rule.n_links, rule,
                               scratch, out.base.data()));
}

template <class Space, class Layer>
SPINNEY_INLINE void prune(const Space& space, const Layer& layer, std::uint32_t node,
                          std::span<const std::uint32_t> candidates, const LinkRule& rule,
                          SearchScratch& scratch, std::span<std::uint32_t> out) {
  const std::size_t n = candidates.size();
  scratch.reserve(0, n);
  for (std::size_t i = 0; i < n; ++i) {
    scratch.slots[i] = layer.slot(candidates[i]);
    space.prefetch(scratch.slots[i]);
  }
  compute_distances(space, space.row(layer.slot(node)), scratch.slots.data(), n,
                    scratch.distances.data());
  scratch.found.resize(n + out.size());
  for (std::size_t i = 0; i < n; ++i)
    scratch.found[i] = key_of(scratch.distances[i], candidates[i]);
  std::sort(scratch.found.begin(), scratch.found.begin() + static_cast<std::ptrdiff_t>(n));
  Key* const kept = scratch.found.data() + n;
  const std::size_t n_kept = choose_links(space, layer, layer.slot(node), scratch.found.data(), n,
                                          out.size(), rule, scratch, kept);
  for (std::size_t i = 0; i < n_kept; ++i) out[i] = node_of(kept[i]);
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

template <class Space>
SPINNEY_INLINE void prune_layer(const Space& space, const HnswGraph& graph, bool on_upper_layer,
                                std::uint32_t node, std::span<const std::uint32_t> candidates,
                                const LinkRule& rule, SearchScratch& scratch,
                                std::span<std::uint32_t> out) {
  if (on_upper_layer) {
    prune(space, UpperLayer{graph.upper, 1}, node, candidates, rule, scratch, out);
  } else {
    prune(space, BaseLayer{graph}, node, candidates, rule, scratch, out);
  }
}

}  // namespace

template <class Space>
void find_nearest(const Space& space, const HnswGraph& graph, const typename Space::Value* query,
                  std::size_t ef, const std::uint8_t* allowed, SearchScratch& scratch) {
  dispatch<nearest<Space>>(space, graph, query, ef, allowed, scratch);
}

template <class Space>
void find_links(const Space& space, const HnswGraph& graph, Slot slot, std::size_t level,
                const LinkRule& rule, SearchScratch& scratch, NewLinks& out) {
  dispatch<links<Space>>(space, graph, slot, level, rule, scratch, out);
}

template <class Space>
void prune_links(const Space& space, const HnswGraph& graph, bool on_upper_layer,
                 std::uint32_t node, std::span<const std::uint32_t> candidates,
                 const LinkRule& rule, SearchScratch& scratch, std::span<std::uint32_t> out) {
  dispatch<prune_layer<Space>>(space, graph, on_upper_layer, node, candidates, rule, scratch, out);
}

template <class Space>
void scan_slots(const Space& space, const typename Space::Value* query, std::span<const Slot> slots,
                std::size_t k, std::vector<Key>& nearest) {
  dispatch<scan<Space>>(space, query, slots, k, nearest);
}

template void find_nearest(const EuclideanSpace&, const HnswGraph&, const EuclideanSpace::Value*,
                           std::size_t, const std::uint8_t*, SearchScratch&);
template void find_links(const EuclideanSpace&, const HnswGraph&, Slot, std::size_t,
                         const LinkRule&, SearchScratch&, NewLinks&);
template void prune_links(const EuclideanSpace&, const HnswGraph&, bool, std::uint32_t,
                          std::span<const std::uint32_t>, const LinkRule&, SearchScratch&,
                          std::span<std::uint32_t>);
template void scan_slots(const EuclideanSpace&, const EuclideanSpace::Value*, std::span<const Slot>,
                         std::size_t, std::vector<Key>&);

template void find_nearest(const ProductSpace&, const HnswGraph&, const ProductSpace::Value*,
                           std::size_t, const std::uint8_t*, SearchScratch&);
template void find_links(const ProductSpace&, const HnswGraph&, Slot, std::size_t, const LinkRule&,
                         SearchScratch&, NewLinks&);
template void prune_links(const ProductSpace&, const HnswGraph&, bool, std::uint32_t,
                          std::span<const std::uint32_t>, const LinkRule&, SearchScratch&,
                          std::span<std::uint32_t>);
template void scan_slots(const ProductSpace&, const ProductSpace::Value*, std::span<const Slot>,
                         std::size_t, std::vector<Key>&);

template void find_nearest(const CodeSpace&, const HnswGraph&, const CodeSpace::Value*, std::size_t,
                           const std::uint8_t*, SearchScratch&);
template void find_links(const CodeSpace&, const HnswGraph&, Slot, std::size_t, const LinkRule&,
                         SearchScratch&, NewLinks&);
template void prune_links(const CodeSpace&, const HnswGraph&, bool, std::uint32_t,
                          std::span<const std::uint32_t>, const LinkRule&, SearchScratch&,
                          std::span<std::uint32_t>);
template void scan_slots(const CodeSpace&, const CodeSpace::Value*, std::span<const Slot>,
                         std::size_t, std::vector<Key>&);

}  // namespace spinney::neighbors
