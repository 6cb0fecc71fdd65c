// Results of radius queries.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "spinney/common/parallel.h"
#include "spinney/common/types.h"
#include "spinney/distance/nearest.h"

namespace spinney::neighbors {

// counts[i] rows belong to query i. Their indices and distances follow those of query i - 1.
struct Found {
  std::vector<distance::RowIndex> counts;
  std::vector<distance::RowIndex> indices;
  std::vector<double> distances;
};

// Runs radius queries in parallel. make_search() returns the search object of a thread, and
// search(i, rows) appends pairs of distance and row for query i. Rows are sorted by distance if
// `sorted`, else by index.
template <class MakeSearch>
Found gather_found(std::size_t n_queries, bool sorted, int n_threads,
                   const MakeSearch& make_search) {
  constexpr std::size_t block_size = 64;
  const std::size_t n_blocks = (n_queries + block_size - 1) / block_size;
  Found out;
  out.counts.resize(n_queries);
  std::vector<Found> found_by_block(n_blocks);
  common::parallel_for(n_blocks, n_threads, [&](std::size_t block, int) {
    auto search = make_search();
    std::vector<std::pair<double, common::Row>> rows;
    const std::size_t end = std::min(n_queries, (block + 1) * block_size);
    for (std::size_t i = block * block_size; i < end; ++i) {
      rows.clear();
      search(i, rows);
      if (sorted) {
        std::sort(rows.begin(), rows.end());
      } else {
        std::sort(rows.begin(), rows.end(),
                  [](const auto& a, const auto& b) { return a.second < b.second; });
      }
      out.counts[i] = static_cast<distance::RowIndex>(rows.size());
      for (const auto& [distance, row] : rows) {
        found_by_block[block].indices.push_back(static_cast<distance::RowIndex>(row));
        found_by_block[block].distances.push_back(distance);
      }
    }
  });
  for (Found& found : found_by_block) {
    out.indices.insert(out.indices.end(), found.indices.begin(), found.indices.end());
    out.distances.insert(out.distances.end(), found.distances.begin(), found.distances.end());
    found = Found();
  }
  return out;
}

}  // namespace spinney::neighbors
