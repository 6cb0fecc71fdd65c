// The graph of an HNSW index. Every vector has a row of links on the ground, padded with `no_slot`.
// Few vectors also stand on the layers above; they have numbers of their own there (`Post`), and
// links between posts, so that vectors without one pay nothing for the layers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "spinney/common/large_array.h"
#include "spinney/neighbors/vector_space.h"

namespace spinney::neighbors {

constexpr Slot no_slot = 0xffffffff;

// The number of a vector among those that stand on upper layers.
using Post = std::uint32_t;

// Makes room and keeps what is there.
template <class T>
void grow(common::LargeArray<T>& array, std::size_t used, std::size_t size) {
  if (array.size() >= size) return;
  common::LargeArray<T> larger(size);
  if (used > 0) std::memcpy(larger.data(), array.data(), used * sizeof(T));
  array = std::move(larger);
}

// Layers above the ground.
struct UpperLayers {
  std::size_t width = 0;             // links a post has on a layer
  std::vector<Slot> slots;           // the vector of each post
  std::vector<std::uint8_t> levels;  // its highest layer, from one
  std::vector<std::size_t> starts;   // where its links begin, layer one first
  std::vector<Post> links;

  std::size_t size() const { return slots.size(); }

  Post* row(Post post, std::size_t level) {
    return links.data() + starts[post] + (level - 1) * width;
  }
  const Post* row(Post post, std::size_t level) const {
    return links.data() + starts[post] + (level - 1) * width;
  }

  Post add(Slot slot, std::size_t level) {
    slots.push_back(slot);
    levels.push_back(static_cast<std::uint8_t>(level));
    starts.push_back(links.size());
    links.resize(links.size() + level * width, no_slot);
    return static_cast<Post>(slots.size() - 1);
  }
};

struct HnswGraph {
  std::size_t width = 0;  // links a vector has on the ground
  std::size_t size = 0;   // vectors that are linked
  common::LargeArray<Slot> links;
  UpperLayers upper;
  Post top = no_slot;  // where walks begin, if there are posts
  Slot ground = 0;     // where they begin otherwise

  std::size_t top_level() const { return top == no_slot ? 0 : upper.levels[top]; }
  Slot* row(Slot slot) { return links.data() + slot * width; }
  const Slot* row(Slot slot) const { return links.data() + slot * width; }
};

// A layer as a walk sees it: rows of links between numbers, and the vector of each number.
struct GroundLayer {
  const HnswGraph& graph;
  SPINNEY_INLINE std::size_t width() const { return graph.width; }
  SPINNEY_INLINE const Slot* row(std::uint32_t number) const { return graph.row(number); }
  SPINNEY_INLINE Slot slot(std::uint32_t number) const { return number; }
};

struct UpperLayer {
  const UpperLayers& upper;
  std::size_t level;
  SPINNEY_INLINE std::size_t width() const { return upper.width; }
  SPINNEY_INLINE const Post* row(std::uint32_t number) const { return upper.row(number, level); }
  SPINNEY_INLINE Slot slot(std::uint32_t number) const { return upper.slots[number]; }
};

}  // namespace spinney::neighbors
