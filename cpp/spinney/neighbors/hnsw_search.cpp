#include <algorithm>
#include <cmath>
#include <limits>

#include "spinney/common/check.h"
#include "spinney/common/parallel.h"
#include "spinney/neighbors/hnsw.h"

namespace spinney::neighbors {

using common::parallel_for;
using common::worthwhile_threads;

std::vector<Slot> Hnsw::slots_allowed(const std::uint8_t* allowed) const {
  std::vector<Slot> slots;
  for (Slot slot = 0; slot < size(); ++slot) {
    if (allowed != nullptr && allowed[slot] == 0) continue;
    if (!deleted_.empty() && deleted_[slot] != 0) continue;
    slots.push_back(slot);
  }
  return slots;
}

void Hnsw::write(std::span<const Key> found, std::size_t k, float* distances, Slot* slots) const {
  for (std::size_t i = 0; i < k; ++i) {
    if (i >= found.size()) {
      distances[i] = std::numeric_limits<float>::infinity();
      slots[i] = no_slot;
      continue;
    }
    const float distance = distance_of(found[i]);
    slots[i] = node_of(found[i]);
    switch (options_.metric) {
      case SearchMetric::euclidean:
        distances[i] = std::sqrt(distance);
        break;
      case SearchMetric::cosine:
        distances[i] = std::clamp(1 + distance, 0.0F, 2.0F);
        break;
      default:
        distances[i] = distance;
    }
  }
}

// Ranks the candidates, which were found with bytes, by exact distances. A candidate whose distance
// in bytes, minus the largest rounding error, is too large is skipped.
void Hnsw::rerank(std::size_t k, double code_error, SearchScratch& scratch) const {
  store_.with_float_space([&](const auto& space) {
    scratch.found.clear();
    constexpr std::size_t step = 8;
    Slot slots[step];
    for (std::size_t first = 0; first < scratch.n_nearest; first += step) {
      const Key nearest = scratch.nearest[first];
      if (scratch.found.size() == k) {
        const double worst = static_cast<double>(distance_of(scratch.found.back()));
        const double bound = options_.metric == SearchMetric::euclidean
                                 ? std::sqrt(worst)
                                 : std::sqrt(2 * std::max(0.0, 1 + worst));
        if (store_.least_distance(distance_of(nearest), code_error) > bound) break;
      }
      const std::size_t n = std::min(step, scratch.n_nearest - first);
      for (std::size_t i = 0; i < n; ++i) {
        slots[i] = node_of(scratch.nearest[first + i]);
        space.prefetch(slots[i]);
      }
      scan_slots(space, scratch.query.data(), {slots, n}, k, scratch.found);
    }
  });
}

// Writes the k nearest vectors, found by graph search, to scratch.found.
void Hnsw::search_one(const float* query, std::size_t k, std::size_t ef,
                      const std::uint8_t* allowed, SearchScratch& scratch) const {
  scratch.query.resize(store_.padded_size());
  store_.prepare(query, scratch.query.data());
  if (options_.has_codes) {
    scratch.code.resize(store_.code_stride());
    const double error = store_.encode(scratch.query.data(), scratch.code.data());
    find_nearest(store_.code_space(), graph_, scratch.code.data(), ef, allowed, scratch);
    rerank(k, error, scratch);
    return;
  }
  store_.with_float_space([&](const auto& space) {
    find_nearest(space, graph_, scratch.query.data(), ef, allowed, scratch);
  });
  scratch.found.assign(
      scratch.nearest.begin(),
      scratch.nearest.begin() + static_cast<std::ptrdiff_t>(std::min(k, scratch.n_nearest)));
}

void Hnsw::search(const float* queries, std::size_t n_queries, std::size_t k, std::size_t ef,
                  const std::uint8_t* allowed, int n_threads, common::Watch& watch,
                  Results out) const {
  const std::shared_lock lock(mutex_);
  if (k == 0 || n_queries == 0) return;
  ef = std::max(ef, k);
  std::vector<std::uint8_t> mask;
  std::vector<Slot> slots;
  const bool partial = allowed != nullptr || n_deleted_ > 0;
  std::size_t n_allowed = size();
  if (partial) {
    slots = slots_allowed(allowed);
    n_allowed = slots.size();
  }
  // If few vectors are allowed, a graph search visits many others, and brute force over the allowed
  // vectors is faster.
  const double n = static_cast<double>(n_allowed);
  const double visited = static_cast<double>(ef * options_.M) * static_cast<double>(size());
  if (ef >= n_allowed || (partial && n * n < visited)) {
    if (!partial) slots = slots_allowed(nullptr);
    return scan_blocks(queries, n_queries, k, slots, n_threads, watch, out);
  }
  if (partial) {
    mask.assign(size(), 0);
    for (const Slot slot : slots) mask[slot] = 1;
  }
  const std::uint8_t* const mask_or_null = partial ? mask.data() : nullptr;
  constexpr std::size_t block_size = 16;
  const double nanoseconds = 500.0 * static_cast<double>(ef * n_queries);
  const int n_workers = worthwhile_threads(nanoseconds, n_threads);
  const std::size_t n_blocks = (n_queries + block_size - 1) / block_size;
  std::vector<std::size_t> incomplete;  // queries that found fewer than k, in a disconnected graph
  std::mutex incomplete_mutex;
  parallel_for(n_blocks, n_workers, [&](std::size_t block, int) {
    auto scratch = take_scratch();
    const std::size_t end = std::min(n_queries, (block + 1) * block_size);
    for (std::size_t i = block * block_size; i < end; ++i) {
      watch.poll(100'000);
      search_one(queries + i * n_features(), k, ef, mask_or_null, *scratch);
      if (scratch->found.size() < k) {
        const std::lock_guard incomplete_lock(incomplete_mutex);
        incomplete.push_back(i);
        continue;
      }
      write(scratch->found, k, out.distances + i * k, out.slots + i * k);
    }
    return_scratch(std::move(scratch));
  });
  if (incomplete.empty()) return;
  if (slots.empty()) slots = slots_allowed(nullptr);
  for (const std::size_t i : incomplete) {
    scan_blocks(queries + i * n_features(), 1, k, slots, 1, watch,
                {out.distances + i * k, out.slots + i * k});
  }
}

void Hnsw::search_exactly(const float* queries, std::size_t n_queries, std::size_t k,
                          const std::uint8_t* allowed, int n_threads, common::Watch& watch,
                          Results out) const {
  const std::shared_lock lock(mutex_);
  if (k == 0) return;
  scan_blocks(queries, n_queries, k, slots_allowed(allowed), n_threads, watch, out);
}

// Several queries scan the same vectors while these are in the cache.
void Hnsw::scan_blocks(const float* queries, std::size_t n_queries, std::size_t k,
                       std::span<const Slot> slots, int n_threads, common::Watch& watch,
                       Results out) const {
  constexpr std::size_t queries_per_block = 16;
  const std::size_t stride = store_.padded_size();
  const std::size_t n_in_cache = std::max<std::size_t>(64, 65536 / stride);
  const std::size_t n_blocks = (n_queries + queries_per_block - 1) / queries_per_block;
  const double nanoseconds =
      (2 + 0.1 * static_cast<double>(stride)) * static_cast<double>(n_queries * slots.size());
  parallel_for(n_blocks, worthwhile_threads(nanoseconds, n_threads), [&](std::size_t block, int) {
    const std::size_t first = block * queries_per_block;
    const std::size_t n = std::min(queries_per_block, n_queries - first);
    std::vector<float> rows(n * stride);
    std::vector<std::vector<Key>> found(n);
    for (std::size_t i = 0; i < n; ++i) {
      store_.prepare(queries + (first + i) * n_features(), rows.data() + i * stride);
      found[i].reserve(k + 1);
    }
    store_.with_float_space([&](const auto& space) {
      for (std::size_t from = 0; from < slots.size(); from += n_in_cache) {
        const auto part = slots.subspan(from, std::min(n_in_cache, slots.size() - from));
        for (std::size_t i = 0; i < n; ++i) {
          scan_slots(space, rows.data() + i * stride, part, k, found[i]);
          watch.poll(part.size() * 10);
        }
      }
    });
    for (std::size_t i = 0; i < n; ++i) {
      write(found[i], k, out.distances + (first + i) * k, out.slots + (first + i) * k);
    }
  });
}

}  // namespace spinney::neighbors
