#include "spinney/neighbors/brute_force.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "spinney/common/dispatch.h"
#include "spinney/common/parallel.h"

namespace spinney::neighbors {

using common::dispatch;
using common::parallel_for;
using common::worthwhile_threads;

namespace {

constexpr std::size_t n_lanes = 16;

// Returns a bit for each of 16 rows: whether its score is within the limit.
SPINNEY_INLINE std::uint32_t find_candidates(const float* products, const float* half_norms,
                                             float limit, float* scores) {
  for (std::size_t lane = 0; lane < n_lanes; ++lane) {
    scores[lane] = half_norms[lane] - products[lane];
  }
  float least = scores[0];
  for (std::size_t lane = 1; lane < n_lanes; ++lane) {
    least = scores[lane] < least ? scores[lane] : least;
  }
  if (!(least <= limit)) return 0;
  std::uint32_t bits = 0;
  for (std::size_t lane = 0; lane < n_lanes; ++lane) {
    bits |= (scores[lane] <= limit ? 1U : 0U) << lane;
  }
  return bits;
}

// Collects the rows within the limit, from row `start` on, until `room` is full. Returns the first
// row that was not processed.
SPINNEY_INLINE std::size_t collect_kernel(const float* products, const float* half_norms,
                                          std::size_t n, std::size_t start, float limit,
                                          std::size_t room, std::uint32_t* rows, float* scores,
                                          std::size_t& n_found) {
  n_found = 0;
  std::size_t j = start;
  float lane_scores[n_lanes];
  for (; j + n_lanes <= n && n_found + n_lanes <= room; j += n_lanes) {
    const std::uint32_t bits = find_candidates(products + j, half_norms + j, limit, lane_scores);
    if (bits == 0) continue;
    for (std::size_t lane = 0; lane < n_lanes; ++lane) {
      rows[n_found] = static_cast<std::uint32_t>(j + lane);
      scores[n_found] = lane_scores[lane];
      n_found += bits >> lane & 1U;
    }
  }
  if (j + n_lanes > n) {
    for (; j < n && n_found < room; ++j) {
      const float score = half_norms[j] - products[j];
      rows[n_found] = static_cast<std::uint32_t>(j);
      scores[n_found] = score;
      n_found += score <= limit ? 1 : 0;
    }
  }
  return j;
}

std::size_t collect(const float* products, const float* half_norms, std::size_t n,
                    std::size_t start, float limit, std::size_t room, std::uint32_t* rows,
                    float* scores, std::size_t& n_found) {
  return dispatch<collect_kernel>(products, half_norms, n, start, limit, room, rows, scores,
                                  n_found);
}

constexpr std::size_t n_sums = 8;

template <class T>
SPINNEY_INLINE double sum_squares(const double* a, const T* b, std::size_t d) {
  double sums[n_sums] = {};
  std::size_t j = 0;
  for (; j + n_sums <= d; j += n_sums) {
    for (std::size_t s = 0; s < n_sums; ++s) {
      const double difference = a[j + s] - static_cast<double>(b[j + s]);
      sums[s] += difference * difference;
    }
  }
  double sum = 0;
  for (; j < d; ++j) {
    const double difference = a[j] - static_cast<double>(b[j]);
    sum += difference * difference;
  }
  for (const double part : sums) sum += part;
  return sum;
}

// Writes row - centre and returns half its squared length.
template <class T>
SPINNEY_INLINE double subtract(const T* from, const double* centre, std::size_t d, float* to) {
  for (std::size_t j = 0; j < d; ++j) {
    to[j] = static_cast<float>(static_cast<double>(from[j]) - centre[j]);
  }
  return 0.5 * sum_squares(centre, from, d);
}

}  // namespace

template <class T>
double centre_rows(const T* points, std::size_t n, std::size_t d, const double* centre,
                   int n_threads, float* centred, float* half_norms) {
  constexpr std::size_t block_size = 256;
  const std::size_t n_blocks = (n + block_size - 1) / block_size;
  std::vector<double> largest(n_blocks);
  const double work = static_cast<double>(n) * static_cast<double>(d);
  parallel_for(n_blocks, worthwhile_threads(work, n_threads), [&](std::size_t block, int) {
    const std::size_t end = std::min(n, (block + 1) * block_size);
    for (std::size_t i = block * block_size; i < end; ++i) {
      const double half = dispatch<subtract<T>>(points + i * d, centre, d, centred + i * d);
      half_norms[i] = static_cast<float>(half);
      largest[block] = std::max(largest[block], half);
    }
  });
  return *std::max_element(largest.begin(), largest.end());
}

template double centre_rows(const double*, std::size_t, std::size_t, const double*, int, float*,
                            float*);
template double centre_rows(const float*, std::size_t, std::size_t, const double*, int, float*,
                            float*);

BruteSelection::BruteSelection(std::size_t n_queries, std::size_t k, std::vector<float> error)
    : k_(k),
      error_(std::move(error)),
      limit_(n_queries, std::numeric_limits<float>::infinity()),
      scores_(n_queries),
      rows_(n_queries),
      overflowed_(n_queries) {}

void BruteSelection::add_block(const float* products, const float* half_norms, std::size_t n,
                               std::size_t first, int n_threads) {
  constexpr std::size_t block_size = 16;
  const std::size_t n_queries = limit_.size();
  const double work = 0.3 * static_cast<double>(n) * static_cast<double>(n_queries);
  parallel_for((n_queries + block_size - 1) / block_size, worthwhile_threads(work, n_threads),
               [&](std::size_t block, int) {
                 const std::size_t end = std::min(n_queries, (block + 1) * block_size);
                 for (std::size_t i = block * block_size; i < end; ++i) {
                   add_block_to(i, products + i * n, half_norms, n, first);
                 }
               });
}

void BruteSelection::add_block_to(std::size_t query, const float* products, const float* half_norms,
                                  std::size_t n, std::size_t first) {
  if (overflowed_[query] != 0) return;
  std::vector<float>& scores = scores_[query];
  std::vector<std::uint32_t>& rows = rows_[query];
  const std::size_t room = 256;
  std::size_t at = 0;
  while (at < n) {
    const std::size_t size = rows.size();
    rows.resize(size + room);
    scores.resize(size + room);
    std::size_t n_found = 0;
    at = collect(products, half_norms, n, at, limit_[query], room, rows.data() + size,
                 scores.data() + size, n_found);
    for (std::size_t i = size; i < size + n_found; ++i) {
      rows[i] += static_cast<std::uint32_t>(first);
    }
    rows.resize(size + n_found);
    scores.resize(size + n_found);
    if (rows.size() > 2 * k_ + 512) compact(query);
    if (overflowed_[query] != 0) return;
  }
}

// Drops rows whose score exceeds the k-th smallest score plus twice the error.
void BruteSelection::compact(std::size_t query) {
  std::vector<float>& scores = scores_[query];
  std::vector<std::uint32_t>& rows = rows_[query];
  if (rows.size() < k_) return;
  std::vector<float> ordered = scores;
  const auto kth = ordered.begin() + static_cast<std::ptrdiff_t>(k_ - 1);
  std::nth_element(ordered.begin(), kth, ordered.end());
  const float limit = *kth + 2 * error_[query];
  limit_[query] = limit;
  std::size_t n_kept = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[n_kept] = rows[i];
    scores[n_kept] = scores[i];
    n_kept += scores[i] <= limit ? 1 : 0;
  }
  rows.resize(n_kept);
  scores.resize(n_kept);
  // Too many candidates for single precision: finish() then measures all rows.
  if (n_kept > 16 * k_ + 4096) {
    overflowed_[query] = 1;
    rows.clear();
    scores.clear();
  }
}

template <class T>
void BruteSelection::finish(const T* points, std::size_t n_points, std::size_t d,
                            const double* queries, int n_threads, double* distances,
                            distance::RowIndex* indices) {
  parallel_for(limit_.size(), n_threads, [&](std::size_t i, int) {
    if (overflowed_[i] == 0) compact(i);
    distance::Nearest found(k_);
    const double* const query = queries + i * d;
    const auto measure = [&](std::size_t row) {
      found.add(dispatch<sum_squares<T>>(query, points + row * d, d),
                static_cast<distance::RowIndex>(row));
    };
    if (overflowed_[i] != 0) {
      for (std::size_t row = 0; row < n_points; ++row) measure(row);
    } else {
      for (const std::uint32_t row : rows_[i]) measure(row);
    }
    found.sort();
    for (std::size_t j = 0; j < k_; ++j) {
      distances[i * k_ + j] = std::sqrt(found.distances()[j]);
      indices[i * k_ + j] = found.indices()[j];
    }
  });
}

template void BruteSelection::finish(const double*, std::size_t, std::size_t, const double*, int,
                                     double*, distance::RowIndex*);
template void BruteSelection::finish(const float*, std::size_t, std::size_t, const double*, int,
                                     double*, distance::RowIndex*);

}  // namespace spinney::neighbors
