// The loops of an HNSW index that depend on the distance, compiled for each space and instruction
// set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "spinney/neighbors/hnsw_layer_search.h"
#include "spinney/neighbors/vector_store.h"

namespace spinney::neighbors {

// Selects links among candidates, closest first. A candidate is skipped if alpha times its squared
// distance to a selected link is at most its squared distance to the vector itself. The squared
// distance is, up to a constant factor, the distance of the space plus `shift`.
struct LinkRule {
  std::size_t ef = 200;      // number of candidates
  std::size_t n_links = 16;  // links of a new vector per layer
  float alpha = 1;
  float shift = 0;
  float same = 0;  // largest distance plus `shift` of equal vectors
};

// The links of a new vector, as keys with their distances.
struct NewLinks {
  std::vector<Key> base;
  std::vector<std::vector<Key>> upper;  // layer one first
};

// Writes the `ef` closest slots to scratch.nearest; `allowed` is null or excludes slots.
template <class Space>
void find_nearest(const Space& space, const HnswGraph& graph, const typename Space::Value* query,
                  std::size_t ef, const std::uint8_t* allowed, SearchScratch& scratch);

// Finds links of a slot that will be on `level` upper layers, to the graph and to the slots between
// the graph and this slot.
template <class Space>
void find_links(const Space& space, const HnswGraph& graph, Slot slot, std::size_t level,
                const LinkRule& rule, SearchScratch& scratch, NewLinks& out);

// Selects the links of a node of the base layer or an upper layer among too many candidates.
template <class Space>
void prune_links(const Space& space, const HnswGraph& graph, bool on_upper_layer,
                 std::uint32_t node, std::span<const std::uint32_t> candidates,
                 const LinkRule& rule, SearchScratch& scratch, std::span<std::uint32_t> out);

// Adds slots to the sorted `nearest`, which keeps the `k` closest.
template <class Space>
void scan_slots(const Space& space, const typename Space::Value* query, std::span<const Slot> slots,
                std::size_t k, std::vector<Key>& nearest);

}  // namespace spinney::neighbors
