// Best-first search in the layers of an HNSW graph. A search keeps the closest visited nodes in a
// sorted array of keys. It expands the closest node that is not expanded yet, until all are.
//
// A key has 64 bits, [distance | node | expanded], and compares as an integer: the smaller node
// wins a tie of distances.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <queue>
#include <span>
#include <vector>

#include "spinney/common/dispatch.h"
#include "spinney/neighbors/hnsw_graph.h"

namespace spinney::neighbors {

using Key = std::int64_t;

// Nodes have 31 bits of a key.
constexpr std::size_t max_vectors = std::size_t{1} << 31;
constexpr Key no_key = std::numeric_limits<Key>::max();

// Maps the bits of a float to an integer with the same order, by inverting those of negative
// floats.
SPINNEY_INLINE std::int32_t ordered_bits(std::int32_t bits) {
  return bits ^ ((bits >> 31) & 0x7fffffff);
}

SPINNEY_INLINE Key key_of(float distance, std::uint32_t node) {
  const auto bits = static_cast<std::uint32_t>(ordered_bits(std::bit_cast<std::int32_t>(distance)));
  return static_cast<Key>(static_cast<std::uint64_t>(bits) << 32 | static_cast<std::uint64_t>(node)
                                                                       << 1);
}
SPINNEY_INLINE float distance_of(Key key) {
  return std::bit_cast<float>(ordered_bits(static_cast<std::int32_t>(key >> 32)));
}
SPINNEY_INLINE std::uint32_t node_of(Key key) { return static_cast<std::uint32_t>(key) >> 1; }
SPINNEY_INLINE bool is_expanded(Key key) { return (key & 1) != 0; }

// The visited nodes of a search. Each search has a new stamp, so that nothing must be cleared.
class Visited {
 public:
  void start(std::size_t n) {
    if (stamps_.size() < n) stamps_.resize(n, 0);
    if (++stamp_ == 0) {
      std::memset(stamps_.data(), 0, stamps_.size());
      stamp_ = 1;
    }
  }
  SPINNEY_INLINE std::uint8_t* stamps() { return stamps_.data(); }
  SPINNEY_INLINE std::uint8_t stamp() const { return stamp_; }

 private:
  std::vector<std::uint8_t> stamps_;
  std::uint8_t stamp_ = 0;
};

// Memory of one thread for its searches.
struct SearchScratch {
  Visited visited;
  std::vector<Key> nearest;  // the closest visited nodes, sorted
  std::size_t n_nearest = 0;
  std::vector<std::uint32_t> unvisited;  // unvisited neighbours of the expanded node
  std::vector<Slot> slots;               // and their vectors
  std::vector<float> distances;
  std::vector<Key> open;           // heap of nodes to expand, for searches with excluded vectors
  std::vector<float> query;        // the query, padded
  std::vector<std::uint8_t> code;  // the query as bytes
  std::vector<Key> found;
  std::vector<Slot> chosen;

  void reserve(std::size_t ef, std::size_t width) {
    if (nearest.size() < ef + 8) nearest.resize(ef + 8);
    if (unvisited.size() < width + 8) {
      unvisited.resize(width + 8);
      slots.resize(width + 8);
      distances.resize(width + 8);
    }
  }
};

// Number of `n` sorted keys that are below `key`: binary search without branches, then counting.
SPINNEY_INLINE std::size_t rank_of(const Key* keys, std::size_t n, Key key) {
  const Key* first = keys;
  while (n > 64) {
    const std::size_t half = n / 2;
    first = first[half] < key ? first + half : first;
    n -= half;
  }
  std::size_t below = 0;
  for (std::size_t i = 0; i < n; ++i) below += first[i] < key ? 1 : 0;
  return static_cast<std::size_t>(first - keys) + below;
}

// Distances to `n` slots. The arrays must have space for three more elements.
template <class Space>
SPINNEY_INLINE void compute_distances(const Space& space, const typename Space::Value* query,
                                      Slot* slots, std::size_t n, float* out) {
  for (std::size_t i = n; i < n + 3; ++i) slots[i] = slots[0];
  for (std::size_t i = 0; i < n; i += 4) space.distances(query, slots + i, out + i);
}

// Collects the unvisited nodes of a row of links and prefetches their vectors.
template <class Space, class Layer>
SPINNEY_INLINE std::size_t find_unvisited(const Space& space, const Layer& layer,
                                          const std::uint32_t* row, SearchScratch& scratch) {
  std::uint8_t* const stamps = scratch.visited.stamps();
  const std::uint8_t stamp = scratch.visited.stamp();
  std::uint32_t* const unvisited = scratch.unvisited.data();
  Slot* const slots = scratch.slots.data();
  const std::size_t width = layer.width();
  std::size_t n = 0;
  for (std::size_t i = 0; i < width; ++i) {
    const std::uint32_t node = row[i];
    if (node == no_slot) break;
    unvisited[n] = node;
    const bool is_new = stamps[node] != stamp;
    stamps[node] = stamp;
    n += is_new ? 1 : 0;
  }
  for (std::size_t i = 0; i < n; ++i) {
    slots[i] = layer.slot(unvisited[i]);
    space.prefetch(slots[i]);
  }
  return n;
}

// Writes the `ef` closest nodes that the search reaches from `entries` to scratch.nearest.
template <class Space, class Layer>
SPINNEY_INLINE void search_layer(const Space& space, const Layer& layer, std::size_t n_nodes,
                                 const typename Space::Value* query, std::span<const Key> entries,
                                 std::size_t ef, SearchScratch& scratch) {
  scratch.reserve(ef, layer.width());
  scratch.visited.start(n_nodes);
  Key* const nearest = scratch.nearest.data();
  std::size_t n = 0;
  for (const Key entry : entries) {
    if (n == ef) break;
    nearest[n++] = entry & ~Key{1};
    scratch.visited.stamps()[node_of(entry)] = scratch.visited.stamp();
  }
  std::size_t at = 0;
  while (at < n) {
    const std::uint32_t node = node_of(nearest[at]);
    nearest[at] |= 1;
    const std::size_t n_unvisited = find_unvisited(space, layer, layer.row(node), scratch);
    // The next node to expand, unless a closer one is found.
    std::size_t next = at + 1;
    while (next < n && is_expanded(nearest[next])) ++next;
    if (next < n) prefetch_bytes(layer.row(node_of(nearest[next])), layer.width() * 4);
    if (n_unvisited > 0) {
      compute_distances(space, query, scratch.slots.data(), n_unvisited, scratch.distances.data());
      for (std::size_t i = 0; i < n_unvisited; ++i) {
        const Key key = key_of(scratch.distances[i], scratch.unvisited[i]);
        if (n == ef && key >= nearest[n - 1]) continue;
        const std::size_t position = rank_of(nearest, n, key);
        if (n < ef) ++n;
        std::memmove(nearest + position + 1, nearest + position, (n - 1 - position) * sizeof(Key));
        nearest[position] = key;
        if (position <= next) {
          next = position;
          prefetch_bytes(layer.row(scratch.unvisited[i]), layer.width() * 4);
        }
      }
    }
    at = next;
    while (at < n && is_expanded(nearest[at])) ++at;
  }
  scratch.n_nearest = n;
}

// The same with excluded nodes. The search passes through them but does not return them, so a heap
// has the nodes to expand and `nearest` the closest allowed ones.
template <class Space, class Layer>
SPINNEY_INLINE void search_allowed(const Space& space, const Layer& layer, std::size_t n_nodes,
                                   const typename Space::Value* query, Key entry, std::size_t ef,
                                   const std::uint8_t* allowed, SearchScratch& scratch) {
  scratch.reserve(ef, layer.width());
  scratch.visited.start(n_nodes);
  Key* const nearest = scratch.nearest.data();
  std::vector<Key>& open = scratch.open;
  constexpr auto later = std::greater<Key>();
  open.assign(1, entry);
  std::size_t n = 0;
  scratch.visited.stamps()[node_of(entry)] = scratch.visited.stamp();
  if (allowed[node_of(entry)] != 0) nearest[n++] = entry;
  while (!open.empty()) {
    const Key closest = open.front();
    if (n == ef && closest > nearest[n - 1]) break;
    std::pop_heap(open.begin(), open.end(), later);
    open.pop_back();
    const std::size_t n_unvisited =
        find_unvisited(space, layer, layer.row(node_of(closest)), scratch);
    if (n_unvisited == 0) continue;
    compute_distances(space, query, scratch.slots.data(), n_unvisited, scratch.distances.data());
    for (std::size_t i = 0; i < n_unvisited; ++i) {
      const Key key = key_of(scratch.distances[i], scratch.unvisited[i]);
      if (n == ef && key >= nearest[n - 1]) continue;
      open.push_back(key);
      std::push_heap(open.begin(), open.end(), later);
      if (allowed[scratch.unvisited[i]] == 0) continue;
      const std::size_t position = rank_of(nearest, n, key);
      if (n < ef) ++n;
      std::memmove(nearest + position + 1, nearest + position, (n - 1 - position) * sizeof(Key));
      nearest[position] = key;
    }
  }
  scratch.n_nearest = n;
}

// Moves to the closest neighbour as long as it is closer. Nodes that were visited before, here or
// on a higher layer, were not closer and are skipped.
template <class Space>
SPINNEY_INLINE Key descend(const Space& space, const UpperLayer& layer,
                           const typename Space::Value* query, Key from, SearchScratch& scratch) {
  Key best = from;
  for (;;) {
    const std::size_t n = find_unvisited(space, layer, layer.row(node_of(best)), scratch);
    if (n == 0) return best;
    compute_distances(space, query, scratch.slots.data(), n, scratch.distances.data());
    Key closest = best;
    for (std::size_t i = 0; i < n; ++i) {
      const Key key = key_of(scratch.distances[i], scratch.unvisited[i]);
      closest = key < closest ? key : closest;
    }
    if (closest == best) return best;
    best = closest;
  }
}

// Descends from the entry point to `level` with one candidate per layer. Returns the key of an
// upper node.
template <class Space>
SPINNEY_INLINE Key descend_to(const Space& space, const HnswGraph& graph,
                              const typename Space::Value* query, std::size_t level,
                              SearchScratch& scratch) {
  scratch.reserve(1, std::max(graph.width, graph.upper.width));
  scratch.visited.start(graph.upper.size());
  const Slot slot = graph.upper.slots[graph.entry_node];
  Key best = key_of(space.distance(query, space.row(slot)), graph.entry_node);
  for (std::size_t at = graph.top_level(); at > level; --at) {
    best = descend(space, UpperLayer{graph.upper, at}, query, best, scratch);
  }
  return best;
}

// Returns the key of the slot where the search on the base layer starts.
template <class Space>
SPINNEY_INLINE Key find_base_entry(const Space& space, const HnswGraph& graph,
                                   const typename Space::Value* query, SearchScratch& scratch) {
  if (graph.entry_node == no_slot) {
    return key_of(space.distance(query, space.row(graph.base_entry)), graph.base_entry);
  }
  const Key best = descend_to(space, graph, query, 0, scratch);
  return key_of(distance_of(best), graph.upper.slots[node_of(best)]);
}

}  // namespace spinney::neighbors
