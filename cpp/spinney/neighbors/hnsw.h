// An approximate index of nearest neighbours: a hierarchical navigable small world graph (Malkov
// and Yashunin, 2018).
//
// Vectors are added in batches, so that the graph does not depend on the number of threads. First
// each vector of a batch finds its links in the present graph and among the earlier vectors of the
// batch. Then each vector that received links from the batch selects which links to keep. Both
// steps are independent for each vector. A batch is at most 5 % of the graph.
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
  std::size_t M = 16;  // links of a new vector per layer; the base layer keeps up to 2 M

  std::size_t ef_construction = 200;
  bool has_codes = false;
  std::uint64_t seed = 0;
};

// A graph as plain arrays, for files. Upper levels and links are indexed by upper node.
struct HnswState {
  std::span<const float> vectors;  // prepared rows, without padding
  std::span<const Slot> links;
  std::span<const Slot> upper_slots;
  std::span<const std::uint8_t> upper_levels;
  std::span<const UpperNode> upper_links;
  std::span<const std::uint8_t> deleted;
  std::span<const float> code_offsets;
  double code_scale;
  std::uint32_t entry_node;
  Slot base_entry;
};

class Hnsw {
 public:
  Hnsw(const HnswOptions& options, std::size_t n_features);
  // Throws InputError if array sizes are inconsistent or a value is out of range.
  Hnsw(const HnswOptions& options, std::size_t n_features, const HnswState& state);

  std::size_t size() const { return store_.size(); }
  std::size_t n_features() const { return store_.n_features(); }
  std::size_t n_deleted() const { return n_deleted_; }

  // Reserves memory for exactly n_vectors vectors in total.
  void reserve(std::size_t n_vectors);
  void add(const float* values, std::size_t n_rows, int n_threads, common::Watch& watch);

  // The k nearest vectors of each query, nearest first. If there are fewer, the rest has distance
  // infinity and slot no_slot. `allowed` is null or has one byte per slot; zero excludes the slot.
  struct Results {
    float* distances;
    Slot* slots;
  };
  void search(const float* queries, std::size_t n_queries, std::size_t k, std::size_t ef,
              const std::uint8_t* allowed, int n_threads, common::Watch& watch, Results out) const;
  // The same by brute force.
  void search_exactly(const float* queries, std::size_t n_queries, std::size_t k,
                      const std::uint8_t* allowed, int n_threads, common::Watch& watch,
                      Results out) const;

  // Deleted vectors stay in the graph as stepping stones, but no search returns them.
  void erase(std::span<const Slot> slots);

  // Renumbers vectors in breadth-first order, so that neighbours are near each other in memory.
  // Returns the old slot of each new slot. Vectors without incoming link get one first if a
  // neighbour has a free slot.
  std::vector<Slot> reorder();

  const VectorStore& store() const { return store_; }
  const HnswGraph& graph() const { return graph_; }
  const std::vector<std::uint8_t>& deleted() const { return deleted_; }
  std::size_t n_bytes() const;

 private:
  struct Batch;
  std::size_t level_of(Slot slot) const;
  void link_unreachable();
  void link_all(int n_threads, common::Watch& watch);
  void link_batch(Batch& batch, int n_threads, common::Watch& watch);
  void write_links(Batch& batch, int n_threads);
  std::unique_ptr<SearchScratch> take_scratch() const;
  void return_scratch(std::unique_ptr<SearchScratch> scratch) const;
  std::vector<Slot> slots_allowed(const std::uint8_t* allowed) const;
  void search_one(const float* query, std::size_t k, std::size_t ef, const std::uint8_t* allowed,
                  SearchScratch& scratch) const;
  void rerank(std::size_t k, double code_error, SearchScratch& scratch) const;
  void scan_blocks(const float* queries, std::size_t n_queries, std::size_t k,
                   std::span<const Slot> slots, int n_threads, common::Watch& watch,
                   Results out) const;
  void write(std::span<const Key> found, std::size_t k, float* distances, Slot* slots) const;

  HnswOptions options_;
  LinkRule rule_;
  VectorStore store_;
  HnswGraph graph_;
  std::vector<std::uint8_t> deleted_;  // empty if no vector is deleted
  std::size_t n_deleted_ = 0;

  mutable std::shared_mutex mutex_;  // searches share it; changes own it
  mutable std::mutex scratches_mutex_;
  mutable std::vector<std::unique_ptr<SearchScratch>> scratches_;
};

}  // namespace spinney::neighbors
