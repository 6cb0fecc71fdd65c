// Walks through the layers of an HNSW graph. A walk keeps the closest numbers it has met in one
// sorted array of keys and opens the closest that is not open yet, until all of them are.
//
// A key is [distance | number | open], 64 bits that compare as integers: equal distances go by the
// number.
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

// Numbers have 31 bits.
constexpr std::size_t max_vectors = std::size_t{1} << 31;
constexpr Key no_key = std::numeric_limits<Key>::max();

// The bits of negative floats are turned round, so that all compare as integers.
SPINNEY_INLINE std::int32_t ordered_bits(std::int32_t bits) {
  return bits ^ ((bits >> 31) & 0x7fffffff);
}

SPINNEY_INLINE Key key_of(float distance, std::uint32_t number) {
  const auto bits = static_cast<std::uint32_t>(ordered_bits(std::bit_cast<std::int32_t>(distance)));
  return static_cast<Key>(static_cast<std::uint64_t>(bits) << 32 |
                          static_cast<std::uint64_t>(number) << 1);
}
SPINNEY_INLINE float distance_of(Key key) {
  return std::bit_cast<float>(ordered_bits(static_cast<std::int32_t>(key >> 32)));
}
SPINNEY_INLINE std::uint32_t number_of(Key key) { return static_cast<std::uint32_t>(key) >> 1; }
SPINNEY_INLINE bool is_open(Key key) { return (key & 1) != 0; }

// The numbers a walk has met: a stamp for each, new with every walk, so that nothing is cleared.
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

// What one thread needs for its walks.
struct WalkSpace {
  Visited visited;
  std::vector<Key> nearest;  // the closest met, in order
  std::size_t n_nearest = 0;
  std::vector<std::uint32_t> fresh;  // of the node under way: numbers not met before
  std::vector<Slot> slots;           // … and their vectors
  std::vector<float> distances;
  std::vector<Key> waiting;        // a heap, of walks that leave vectors out
  std::vector<float> query;        // the query, padded
  std::vector<std::uint8_t> code;  // … and as bytes
  std::vector<Key> found;
  std::vector<Slot> chosen;

  void reserve(std::size_t ef, std::size_t width) {
    if (nearest.size() < ef + 8) nearest.resize(ef + 8);
    if (fresh.size() < width + 8) {
      fresh.resize(width + 8);
      slots.resize(width + 8);
      distances.resize(width + 8);
    }
  }
};

// How many of `n` sorted keys are below `key`. Halving without branches, then counting.
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

// Distances of `n` slots; the arrays have room for three more.
template <class Space>
SPINNEY_INLINE void measure(const Space& space, const typename Space::Value* query, Slot* slots,
                            std::size_t n, float* out) {
  for (std::size_t i = n; i < n + 3; ++i) slots[i] = slots[0];
  for (std::size_t i = 0; i < n; i += 4) space.distances(query, slots + i, out + i);
}

// Collects the numbers of a row that the walk has not met, and asks for their vectors.
template <class Space, class Layer>
SPINNEY_INLINE std::size_t find_fresh(const Space& space, const Layer& layer,
                                      const std::uint32_t* row, WalkSpace& walk) {
  std::uint8_t* const stamps = walk.visited.stamps();
  const std::uint8_t stamp = walk.visited.stamp();
  std::uint32_t* const fresh = walk.fresh.data();
  Slot* const slots = walk.slots.data();
  const std::size_t width = layer.width();
  std::size_t n = 0;
  for (std::size_t i = 0; i < width; ++i) {
    const std::uint32_t number = row[i];
    if (number == no_slot) break;
    fresh[n] = number;
    const bool is_new = stamps[number] != stamp;
    stamps[number] = stamp;
    n += is_new ? 1 : 0;
  }
  for (std::size_t i = 0; i < n; ++i) {
    slots[i] = layer.slot(fresh[i]);
    space.prefetch(slots[i]);
  }
  return n;
}

// The `ef` closest numbers that can be reached from `entry`, into walk.nearest.
template <class Space, class Layer>
SPINNEY_INLINE void walk_layer(const Space& space, const Layer& layer, std::size_t n_numbers,
                               const typename Space::Value* query, std::span<const Key> entries,
                               std::size_t ef, WalkSpace& walk) {
  walk.reserve(ef, layer.width());
  walk.visited.start(n_numbers);
  Key* const nearest = walk.nearest.data();
  std::size_t n = 0;
  for (const Key entry : entries) {
    if (n == ef) break;
    nearest[n++] = entry & ~Key{1};
    walk.visited.stamps()[number_of(entry)] = walk.visited.stamp();
  }
  std::size_t at = 0;
  while (at < n) {
    const std::uint32_t number = number_of(nearest[at]);
    nearest[at] |= 1;
    const std::size_t n_fresh = find_fresh(space, layer, layer.row(number), walk);
    // Where the walk goes on, unless something closer turns up.
    std::size_t next = at + 1;
    while (next < n && is_open(nearest[next])) ++next;
    if (next < n) prefetch_bytes(layer.row(number_of(nearest[next])), layer.width() * 4);
    if (n_fresh > 0) {
      measure(space, query, walk.slots.data(), n_fresh, walk.distances.data());
      for (std::size_t i = 0; i < n_fresh; ++i) {
        const Key key = key_of(walk.distances[i], walk.fresh[i]);
        if (n == ef && key >= nearest[n - 1]) continue;
        const std::size_t place = rank_of(nearest, n, key);
        if (n < ef) ++n;
        std::memmove(nearest + place + 1, nearest + place, (n - 1 - place) * sizeof(Key));
        nearest[place] = key;
        if (place <= next) {
          next = place;
          prefetch_bytes(layer.row(walk.fresh[i]), layer.width() * 4);
        }
      }
    }
    at = next;
    while (at < n && is_open(nearest[at])) ++at;
  }
  walk.n_nearest = n;
}

// The same among numbers that `allowed` has, through those that it has not: a heap of what is to be
// opened, beside the closest that count.
template <class Space, class Layer>
SPINNEY_INLINE void walk_allowed(const Space& space, const Layer& layer, std::size_t n_numbers,
                                 const typename Space::Value* query, Key entry, std::size_t ef,
                                 const std::uint8_t* allowed, WalkSpace& walk) {
  walk.reserve(ef, layer.width());
  walk.visited.start(n_numbers);
  Key* const nearest = walk.nearest.data();
  std::vector<Key>& waiting = walk.waiting;
  constexpr auto later = std::greater<Key>();
  waiting.assign(1, entry);
  std::size_t n = 0;
  walk.visited.stamps()[number_of(entry)] = walk.visited.stamp();
  if (allowed[number_of(entry)] != 0) nearest[n++] = entry;
  while (!waiting.empty()) {
    const Key closest = waiting.front();
    if (n == ef && closest > nearest[n - 1]) break;
    std::pop_heap(waiting.begin(), waiting.end(), later);
    waiting.pop_back();
    const std::size_t n_fresh = find_fresh(space, layer, layer.row(number_of(closest)), walk);
    if (n_fresh == 0) continue;
    measure(space, query, walk.slots.data(), n_fresh, walk.distances.data());
    for (std::size_t i = 0; i < n_fresh; ++i) {
      const Key key = key_of(walk.distances[i], walk.fresh[i]);
      if (n == ef && key >= nearest[n - 1]) continue;
      waiting.push_back(key);
      std::push_heap(waiting.begin(), waiting.end(), later);
      if (allowed[walk.fresh[i]] == 0) continue;
      const std::size_t place = rank_of(nearest, n, key);
      if (n < ef) ++n;
      std::memmove(nearest + place + 1, nearest + place, (n - 1 - place) * sizeof(Key));
      nearest[place] = key;
    }
  }
  walk.n_nearest = n;
}

// Goes to the closest number of a layer as long as a link leads closer. What was met before, here
// or on a layer above, was no closer and is not measured again.
template <class Space>
SPINNEY_INLINE Key descend(const Space& space, const UpperLayer& layer,
                           const typename Space::Value* query, Key from, WalkSpace& walk) {
  Key best = from;
  for (;;) {
    const std::size_t n = find_fresh(space, layer, layer.row(number_of(best)), walk);
    if (n == 0) return best;
    measure(space, query, walk.slots.data(), n, walk.distances.data());
    Key closest = best;
    for (std::size_t i = 0; i < n; ++i) {
      const Key key = key_of(walk.distances[i], walk.fresh[i]);
      closest = key < closest ? key : closest;
    }
    if (closest == best) return best;
    best = closest;
  }
}

// Down from the top to `level`, with one candidate a layer: a key of a post.
template <class Space>
SPINNEY_INLINE Key descend_to(const Space& space, const HnswGraph& graph,
                              const typename Space::Value* query, std::size_t level,
                              WalkSpace& walk) {
  walk.reserve(1, std::max(graph.width, graph.upper.width));
  walk.visited.start(graph.upper.size());
  const Slot slot = graph.upper.slots[graph.top];
  Key best = key_of(space.distance(query, space.row(slot)), graph.top);
  for (std::size_t at = graph.top_level(); at > level; --at) {
    best = descend(space, UpperLayer{graph.upper, at}, query, best, walk);
  }
  return best;
}

// Where the walk on the ground begins: a key of a slot.
template <class Space>
SPINNEY_INLINE Key ground_entry(const Space& space, const HnswGraph& graph,
                                const typename Space::Value* query, WalkSpace& walk) {
  if (graph.top == no_slot) {
    return key_of(space.distance(query, space.row(graph.ground)), graph.ground);
  }
  const Key best = descend_to(space, graph, query, 0, walk);
  return key_of(distance_of(best), graph.upper.slots[number_of(best)]);
}

}  // namespace spinney::neighbors
