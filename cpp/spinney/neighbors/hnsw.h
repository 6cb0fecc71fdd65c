// An approximate index of nearest neighbours: a hierarchical navigable small world graph (Malkov
// and Yashunin, 2018).
//
// Vectors enter in batches, so that the graph is the same for any number of threads. The vectors of
// a batch look for their links in the graph as it is and among each other, each by itself; then
// every vector that got links from the batch chooses which to keep, again each by itself. A batch
// is at most a twentieth of the graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <vector>

#include "spinney/common/watch.h"
#include "spinney/neighbors/hnsw_graph.h"
#include "spinney/neighbors/hnsw_kernels.h"
#include "spinney/neighbors/vector_store.h"

namespace spinney::neighbors {

struct HnswOptions {
  SearchMetric metric = SearchMetric::euclidean;
  std::size_t n_links = 16;  // M: links of a new vector on each layer; twice as many on the ground
  std::size_t ef_construction = 200;
  bool has_codes = false;
  std::uint64_t seed = 0;
};

// A graph as plain arrays, to be kept. Levels and upper links are by post.
struct HnswState {
  std::span<const float> vectors;  // prepared rows, without padding
  std::span<const Slot> links;
  std::span<const Slot> post_slots;
  std::span<const std::uint8_t> post_levels;
  std::span<const Post> post_links;
  std::span<const std::uint8_t> deleted;
  std::span<const float> code_offsets;
  double code_scale;
  std::uint32_t top;
  Slot ground;
};

class Hnsw {
 public:
  Hnsw(const HnswOptions& options, std::size_t n_features);
  // Throws InputError where the arrays do not belong together or a number is out of range.
  Hnsw(const HnswOptions& options, std::size_t n_features, const HnswState& state);

  std::size_t size() const { return store_.size(); }
  std::size_t n_features() const { return store_.n_features(); }
  std::size_t n_deleted() const { return n_deleted_; }

  // Room for so many vectors in all, and no more.
  void reserve(std::size_t n_vectors);
  void add(const float* values, std::size_t n_rows, int n_threads, common::Watch& watch);

  // The k closest of each query, closest first: distances and slots (or infinity and no_slot where
  // there are fewer). `allowed`, if not null, has a byte for each slot.
  struct Answer {
    float* distances;
    Slot* slots;
  };
  void search(const float* queries, std::size_t n_queries, std::size_t k, std::size_t ef,
              const std::uint8_t* allowed, int n_threads, common::Watch& watch, Answer out) const;
  // The same, by measuring every distance.
  void search_exactly(const float* queries, std::size_t n_queries, std::size_t k,
                      const std::uint8_t* allowed, int n_threads, common::Watch& watch,
                      Answer out) const;

  // Deleted vectors stay in the graph, for walks to pass through, and are never an answer.
  void erase(std::span<const Slot> slots);

  // Numbers vectors in the order of a search through the graph in breadth, so that neighbours lie
  // near each other. Returns where each came from. Vectors that no link leads to get one first,
  // where there is room.
  std::vector<Slot> reorder();

  const VectorStore& store() const { return store_; }
  const HnswGraph& graph() const { return graph_; }
  const std::vector<std::uint8_t>& deleted() const { return deleted_; }
  std::size_t n_bytes() const;

 private:
  struct Batch;
  std::size_t level_of(Slot slot) const;
  void link_the_forgotten();
  void link_all(int n_threads, common::Watch& watch);
  void link_batch(Batch& batch, int n_threads, common::Watch& watch);
  void settle_batch(Batch& batch, int n_threads);
  std::unique_ptr<WalkSpace> take_walk() const;
  void give_walk(std::unique_ptr<WalkSpace> walk) const;
  std::vector<Slot> slots_allowed(const std::uint8_t* allowed) const;
  void walk_one(const float* query, std::size_t k, std::size_t ef, const std::uint8_t* allowed,
                WalkSpace& walk) const;
  void rank_again(std::size_t k, double code_error, WalkSpace& walk) const;
  void scan_blocks(const float* queries, std::size_t n_queries, std::size_t k,
                   std::span<const Slot> slots, int n_threads, common::Watch& watch,
                   Answer out) const;
  void write(std::span<const Key> found, std::size_t k, float* distances, Slot* slots) const;

  HnswOptions options_;
  LinkRule rule_;
  VectorStore store_;
  HnswGraph graph_;
  std::vector<std::uint8_t> deleted_;  // empty as long as none is
  std::size_t n_deleted_ = 0;

  mutable std::shared_mutex mutex_;  // many may search while nobody changes the index
  mutable std::mutex walks_mutex_;
  mutable std::vector<std::unique_ptr<WalkSpace>> walks_;
};

}  // namespace spinney::neighbors
