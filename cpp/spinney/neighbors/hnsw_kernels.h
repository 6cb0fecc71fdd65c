// The loops of an HNSW index that depend on how distances are measured, compiled for each space and
// instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "spinney/neighbors/hnsw_walk.h"
#include "spinney/neighbors/vector_store.h"

namespace spinney::neighbors {

// How links are chosen among candidates: closest first, and one that lies closer to a link chosen
// before than to the vector itself is left out. Closer by a factor `alpha` of the squared distance,
// which is, but for a factor, the space's distance and `shift`.
struct LinkRule {
  std::size_t ef = 200;      // candidates looked for
  std::size_t n_links = 16;  // links that a new vector gets on each layer
  float alpha = 1;
  float shift = 0;
  float same = 0;  // with `shift`, the distance of copies of a vector
};

// The links of a vector under way into the graph: keys with the distance to each.
struct NewLinks {
  std::vector<Key> ground;
  std::vector<std::vector<Key>> upper;  // layer one first
};

#define SPINNEY_HNSW_KERNELS(Space)                                                               \
  /* The `ef` closest slots, into walk.nearest; only those allowed, unless that is null. */       \
  void find_nearest(const Space& space, const HnswGraph& graph, const Space::Value* query,        \
                    std::size_t ef, const std::uint8_t* allowed, WalkSpace& walk);                \
  /* The links of a slot that is not in the graph yet and will stand on `level` layers, to the */ \
  /* graph and to the slots between it and this one. */                                           \
  void find_links(const Space& space, const HnswGraph& graph, Slot slot, std::size_t level,       \
                  const LinkRule& rule, WalkSpace& walk, NewLinks& out);                          \
  /* The row of a vector from more candidates than it can have: numbers of the ground, or of */   \
  /* posts. */                                                                                    \
  void prune_links(const Space& space, const HnswGraph& graph, bool of_posts,                     \
                   std::uint32_t number, std::span<const std::uint32_t> candidates,               \
                   const LinkRule& rule, WalkSpace& walk, std::span<std::uint32_t> out);          \
  /* Adds slots to the `k` closest in `nearest`, which is sorted and has `n` of them. */          \
  void scan_slots(const Space& space, const Space::Value* query, std::span<const Slot> slots,     \
                  std::size_t k, std::vector<Key>& nearest);

SPINNEY_HNSW_KERNELS(EuclideanSpace)
SPINNEY_HNSW_KERNELS(ProductSpace)
SPINNEY_HNSW_KERNELS(CodeSpace)

#undef SPINNEY_HNSW_KERNELS

}  // namespace spinney::neighbors
