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
    slots[i] = number_of(found[i]);
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

// The closest by bytes become the closest by numbers. What is too far by its bytes, whatever they
// rounded, need not be measured again.
void Hnsw::rank_again(std::size_t k, double code_error, WalkSpace& walk) const {
  store_.with_float_space([&](const auto& space) {
    walk.found.clear();
    constexpr std::size_t step = 8;
    Slot slots[step];
    for (std::size_t first = 0; first < walk.n_nearest; first += step) {
      const Key nearest = walk.nearest[first];
      if (walk.found.size() == k) {
        const double worst = static_cast<double>(distance_of(walk.found.back()));
        const double bound = options_.metric == SearchMetric::euclidean
                                 ? std::sqrt(worst)
                                 : std::sqrt(2 * std::max(0.0, 1 + worst));
        if (store_.least_distance(distance_of(nearest), code_error) > bound) break;
      }
      const std::size_t n = std::min(step, walk.n_nearest - first);
      for (std::size_t i = 0; i < n; ++i) {
        slots[i] = number_of(walk.nearest[first + i]);
        space.prefetch(slots[i]);
      }
      scan_slots(space, walk.query.data(), {slots, n}, k, walk.found);
    }
  });
}

// The k closest by walking, into walk.found.
void Hnsw::walk_one(const float* query, std::size_t k, std::size_t ef, const std::uint8_t* allowed,
                    WalkSpace& walk) const {
  walk.query.resize(store_.padded_size());
  store_.prepare(query, walk.query.data());
  if (options_.has_codes) {
    walk.code.resize(store_.code_stride());
    const double error = store_.encode(walk.query.data(), walk.code.data());
    find_nearest(store_.code_space(), graph_, walk.code.data(), ef, allowed, walk);
    rank_again(k, error, walk);
    return;
  }
  store_.with_float_space([&](const auto& space) {
    find_nearest(space, graph_, walk.query.data(), ef, allowed, walk);
  });
  walk.found.assign(walk.nearest.begin(), walk.nearest.begin() + static_cast<std::ptrdiff_t>(
                                                                     std::min(k, walk.n_nearest)));
}

void Hnsw::search(const float* queries, std::size_t n_queries, std::size_t k, std::size_t ef,
                  const std::uint8_t* allowed, int n_threads, common::Watch& watch,
                  Answer out) const {
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
  // A walk that may answer with few vectors passes by many others: measuring all of the few is
  // cheaper then.
  const double n = static_cast<double>(n_allowed);
  const double walked = static_cast<double>(ef * options_.n_links) * static_cast<double>(size());
  if (ef >= n_allowed || (partial && n * n < walked)) {
    if (!partial) slots = slots_allowed(nullptr);
    return scan_blocks(queries, n_queries, k, slots, n_threads, watch, out);
  }
  if (partial) {
    mask.assign(size(), 0);
    for (const Slot slot : slots) mask[slot] = 1;
  }
  const std::uint8_t* const mask_or_null = partial ? mask.data() : nullptr;
  constexpr std::size_t piece_size = 16;
  const double nanoseconds = 500.0 * static_cast<double>(ef * n_queries);
  const int n_workers = worthwhile_threads(nanoseconds, n_threads);
  const std::size_t n_pieces = (n_queries + piece_size - 1) / piece_size;
  std::vector<std::size_t> poor;  // queries that did not find k: the graph is in parts
  std::mutex poor_mutex;
  parallel_for(n_pieces, n_workers, [&](std::size_t piece, int) {
    auto walk = take_walk();
    const std::size_t end = std::min(n_queries, (piece + 1) * piece_size);
    for (std::size_t i = piece * piece_size; i < end; ++i) {
      watch.poll(100'000);
      walk_one(queries + i * n_features(), k, ef, mask_or_null, *walk);
      if (walk->found.size() < k) {
        const std::lock_guard poor_lock(poor_mutex);
        poor.push_back(i);
        continue;
      }
      write(walk->found, k, out.distances + i * k, out.slots + i * k);
    }
    give_walk(std::move(walk));
  });
  if (poor.empty()) return;
  if (slots.empty()) slots = slots_allowed(nullptr);
  for (const std::size_t i : poor) {
    scan_blocks(queries + i * n_features(), 1, k, slots, 1, watch,
                {out.distances + i * k, out.slots + i * k});
  }
}

void Hnsw::search_exactly(const float* queries, std::size_t n_queries, std::size_t k,
                          const std::uint8_t* allowed, int n_threads, common::Watch& watch,
                          Answer out) const {
  const std::shared_lock lock(mutex_);
  if (k == 0) return;
  scan_blocks(queries, n_queries, k, slots_allowed(allowed), n_threads, watch, out);
}

// Some queries at a time go over the same vectors while these are in the cache.
void Hnsw::scan_blocks(const float* queries, std::size_t n_queries, std::size_t k,
                       std::span<const Slot> slots, int n_threads, common::Watch& watch,
                       Answer out) const {
  constexpr std::size_t n_together = 16;
  const std::size_t stride = store_.padded_size();
  const std::size_t n_in_cache = std::max<std::size_t>(64, 65536 / stride);
  const std::size_t n_blocks = (n_queries + n_together - 1) / n_together;
  const double nanoseconds =
      (2 + 0.1 * static_cast<double>(stride)) * static_cast<double>(n_queries * slots.size());
  parallel_for(n_blocks, worthwhile_threads(nanoseconds, n_threads), [&](std::size_t block, int) {
    const std::size_t first = block * n_together;
    const std::size_t n = std::min(n_together, n_queries - first);
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
