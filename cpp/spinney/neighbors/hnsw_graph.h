// The graph of an HNSW index. Every vector has a row of links on the base layer, padded with
// `no_slot`. Few vectors are also on upper layers. Their nodes there have their own index
// (`UpperNode`), so that other vectors need no memory for upper layers.
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

// The index of a vector among those on upper layers.
using UpperNode = std::uint32_t;

// Enlarges an array and keeps the first `used` elements.
template <class T>
void grow(common::LargeArray<T>& array, std::size_t used, std::size_t size) {
  if (array.size() >= size) return;
  common::LargeArray<T> larger(size);
  if (used > 0) std::memcpy(larger.data(), array.data(), used * sizeof(T));
  array = std::move(larger);
}

// Layers above the base layer.
struct UpperLayers {
  std::size_t width = 0;             // links per node and layer
  std::vector<Slot> slots;           // vector of each node
  std::vector<std::uint8_t> levels;  // highest layer of each node, from one
  std::vector<std::size_t> starts;   // first link of each node, layer one first
  std::vector<UpperNode> links;

  std::size_t size() const { return slots.size(); }

  UpperNode* row(UpperNode upper_node, std::size_t level) {
    return links.data() + starts[upper_node] + (level - 1) * width;
  }
  const UpperNode* row(UpperNode upper_node, std::size_t level) const {
    return links.data() + starts[upper_node] + (level - 1) * width;
  }

  UpperNode add(Slot slot, std::size_t level) {
    slots.push_back(slot);
    levels.push_back(static_cast<std::uint8_t>(level));
    starts.push_back(links.size());
    links.resize(links.size() + level * width, no_slot);
    return static_cast<UpperNode>(slots.size() - 1);
  }
};

struct HnswGraph {
  std::size_t width = 0;  // links per vector on the base layer
  std::size_t size = 0;   // number of linked vectors
  common::LargeArray<Slot> links;
  UpperLayers upper;
  UpperNode entry_node = no_slot;  // entry point of searches if there are upper layers
  Slot base_entry = 0;             // entry point otherwise

  std::size_t top_level() const { return entry_node == no_slot ? 0 : upper.levels[entry_node]; }
  Slot* row(Slot slot) { return links.data() + slot * width; }
  const Slot* row(Slot slot) const { return links.data() + slot * width; }
};

// A layer in a search: the links of each node, and the vector of each node.
struct BaseLayer {
  const HnswGraph& graph;
  SPINNEY_INLINE std::size_t width() const { return graph.width; }
  SPINNEY_INLINE const Slot* row(std::uint32_t node) const { return graph.row(node); }
  SPINNEY_INLINE Slot slot(std::uint32_t node) const { return node; }
};

struct UpperLayer {
  const UpperLayers& upper;
  std::size_t level;
  SPINNEY_INLINE std::size_t width() const { return upper.width; }
  SPINNEY_INLINE const UpperNode* row(std::uint32_t node) const { return upper.row(node, level); }
  SPINNEY_INLINE Slot slot(std::uint32_t node) const { return upper.slots[node]; }
};

}  // namespace spinney::neighbors
