// Rows within a distance of many queries, one query after the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "spinney/common/parallel.h"
#include "spinney/common/types.h"
#include "spinney/distance/nearest.h"

namespace spinney::neighbors {

struct Found {
  std::vector<distance::Place> counts;
  std::vector<distance::Place> places;
  std::vector<double> distances;
};

// make_search() gives a thread something that can be called: search(query, rows) adds pairs of
// distance and row. They are kept by row, or the nearest first.
template <class MakeSearch>
Found gather_found(std::size_t n_queries, bool sorted, int n_threads,
                   const MakeSearch& make_search) {
  constexpr std::size_t block = 64;
  const std::size_t n_blocks = (n_queries + block - 1) / block;
  Found out;
  out.counts.resize(n_queries);
  std::vector<Found> parts(n_blocks);
  common::parallel_for(n_blocks, n_threads, [&](std::size_t piece, int) {
    auto search = make_search();
    std::vector<std::pair<double, common::Row>> rows;
    const std::size_t end = std::min(n_queries, (piece + 1) * block);
    for (std::size_t i = piece * block; i < end; ++i) {
      rows.clear();
      search(i, rows);
      if (sorted) {
        std::sort(rows.begin(), rows.end());
      } else {
        std::sort(rows.begin(), rows.end(),
                  [](const auto& a, const auto& b) { return a.second < b.second; });
      }
      out.counts[i] = static_cast<distance::Place>(rows.size());
      for (const auto& [distance, row] : rows) {
        parts[piece].places.push_back(static_cast<distance::Place>(row));
        parts[piece].distances.push_back(distance);
      }
    }
  });
  for (Found& part : parts) {
    out.places.insert(out.places.end(), part.places.begin(), part.places.end());
    out.distances.insert(out.distances.end(), part.distances.begin(), part.distances.end());
    part = Found();
  }
  return out;
}

}  // namespace spinney::neighbors
