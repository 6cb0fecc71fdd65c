// Invariants of HNSW graphs.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include "spinney/common/random.h"
#include "spinney/neighbors/hnsw.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::neighbors;

namespace {

std::vector<float> draw_rows(std::size_t n, std::size_t d, bool coarse) {
  common::Stream stream(4, common::Purpose::rows, n);
  std::vector<float> out(n * d);
  for (float& value : out) {
    value = coarse ? static_cast<float>(stream.below(3)) : static_cast<float>(stream.uniform());
  }
  return out;
}

// Whether a row has valid links first, then padding, without repetition or a link to itself.
template <class IsValid>
bool is_valid_row(const std::uint32_t* row, std::size_t width, std::uint32_t own,
                  const IsValid& is_valid) {
  const std::uint32_t* const end = std::find(row, row + width, no_slot);
  const std::set<std::uint32_t> links(row, end);
  return std::all_of(end, row + width, [](std::uint32_t link) { return link == no_slot; }) &&
         links.size() == static_cast<std::size_t>(end - row) && links.count(own) == 0 &&
         std::all_of(row, end, is_valid);
}

std::size_t count_reachable(const Hnsw& index) {
  const HnswGraph& graph = index.graph();
  std::vector<bool> visited(index.size(), false);
  std::vector<Slot> open{graph.entry_node == no_slot ? graph.base_entry
                                                     : graph.upper.slots[graph.entry_node]};
  visited[open[0]] = true;
  std::size_t n = 0;
  while (!open.empty()) {
    const Slot slot = open.back();
    open.pop_back();
    ++n;
    for (std::size_t i = 0; i < graph.width && graph.row(slot)[i] != no_slot; ++i) {
      const Slot next = graph.row(slot)[i];
      if (!visited[next]) open.push_back(next);
      visited[next] = true;
    }
  }
  return n;
}

void check_graph(const Hnsw& index) {
  const HnswGraph& graph = index.graph();
  const UpperLayers& upper = graph.upper;
  CHECK(graph.size == index.size());
  int n_invalid = 0;
  for (Slot slot = 0; slot < index.size(); ++slot) {
    n_invalid += !is_valid_row(graph.row(slot), graph.width, slot,
                               [&](Slot link) { return link < index.size(); });
  }
  std::size_t highest = 0;
  for (UpperNode node = 0; node < upper.size(); ++node) {
    n_invalid += upper.slots[node] >= index.size() || upper.levels[node] == 0;
    highest = std::max<std::size_t>(highest, upper.levels[node]);
    for (std::size_t level = 1; level <= upper.levels[node]; ++level) {
      n_invalid += !is_valid_row(upper.row(node, level), upper.width, node, [&](UpperNode link) {
        return link < upper.size() && upper.levels[link] >= level;
      });
    }
  }
  const std::set<Slot> distinct(upper.slots.begin(), upper.slots.end());
  CHECK(distinct.size() == upper.size());
  CHECK(n_invalid == 0);
  CHECK(graph.top_level() == highest);
}

}  // namespace

TEST(hnsw_graphs_are_valid_and_connected) {
  for (const bool coarse : {false, true}) {
    for (const std::size_t M : {std::size_t{3}, std::size_t{16}}) {
      HnswOptions options;
      options.M = M;
      options.ef_construction = 40;
      const std::size_t n = 1200, d = 4;
      const std::vector<float> rows = draw_rows(n, d, coarse);
      Hnsw index(options, d);
      common::Watch watch;
      index.add(rows.data(), 500, 2, watch);
      check_graph(index);
      index.add(rows.data() + 500 * d, n - 500, 2, watch);
      check_graph(index);
      // A layer has about 1 / M of the vectors of the layer below.
      const double expected = static_cast<double>(n) / static_cast<double>(M);
      CHECK_NEAR(static_cast<double>(index.graph().upper.size()), expected,
                 5 * std::sqrt(expected));
      const std::vector<Slot> order = index.reorder();
      check_graph(index);
      if (!coarse) CHECK(count_reachable(index) == n);
      std::vector<Slot> sorted = order;
      std::sort(sorted.begin(), sorted.end());
      int n_moved_wrongly = 0;
      for (Slot slot = 0; slot < n; ++slot) {
        n_moved_wrongly += sorted[slot] != slot;
        n_moved_wrongly += !std::equal(index.store().row(slot), index.store().row(slot) + d,
                                       rows.data() + order[slot] * d);
      }
      CHECK(n_moved_wrongly == 0);
    }
  }
}

TEST(hnsw_exact_search_matches_naive_distances) {
  const std::size_t n = 70, d = 5, k = 9;
  const std::vector<float> rows = draw_rows(n, d, false), query = draw_rows(1, d, false);
  for (const SearchMetric metric :
       {SearchMetric::euclidean, SearchMetric::cosine, SearchMetric::inner_product}) {
    HnswOptions options;
    options.metric = metric;
    Hnsw index(options, d);
    common::Watch watch;
    index.add(rows.data(), n, 1, watch);
    const Slot deleted[] = {3, 8};
    index.erase(deleted);
    std::vector<double> expected;
    for (std::size_t i = 0; i < n; ++i) {
      if (i == 3 || i == 8) continue;
      double square = 0, product = 0, length = 0, length_of_query = 0;
      for (std::size_t j = 0; j < d; ++j) {
        const double x = static_cast<double>(rows[i * d + j]), y = static_cast<double>(query[j]);
        square += (x - y) * (x - y);
        product += x * y;
        length += x * x;
        length_of_query += y * y;
      }
      expected.push_back(metric == SearchMetric::euclidean ? std::sqrt(square)
                         : metric == SearchMetric::cosine
                             ? 1 - product / std::sqrt(length * length_of_query)
                             : -product);
    }
    std::sort(expected.begin(), expected.end());
    std::vector<float> distances(k);
    std::vector<Slot> slots(k);
    index.search_exactly(query.data(), 1, k, nullptr, 1, watch, {distances.data(), slots.data()});
    for (std::size_t i = 0; i < k; ++i) {
      CHECK_NEAR(static_cast<double>(distances[i]), expected[i], 1e-5);
      CHECK(slots[i] != 3 && slots[i] != 8);
    }
  }
}

TEST(hnsw_states_restore_the_index) {
  HnswOptions options;
  options.M = 4;
  options.has_codes = true;
  const std::size_t n = 400, d = 6, k = 5;
  const std::vector<float> rows = draw_rows(n, d, false);
  Hnsw index(options, d);
  common::Watch watch;
  index.add(rows.data(), n, 2, watch);
  const HnswGraph& graph = index.graph();
  std::vector<float> vectors;
  for (Slot slot = 0; slot < n; ++slot) {
    vectors.insert(vectors.end(), index.store().row(slot), index.store().row(slot) + d);
  }
  HnswState state{};
  state.vectors = vectors;
  state.links = {graph.links.data(), n * graph.width};
  state.upper_slots = graph.upper.slots;
  state.upper_levels = graph.upper.levels;
  state.upper_links = graph.upper.links;
  state.code_offsets = std::span(index.store().offsets()).first(d);
  state.code_scale = index.store().scale();
  state.entry_node = graph.entry_node;
  state.base_entry = graph.base_entry;
  const Hnsw restored(options, d, state);
  check_graph(restored);
  std::vector<float> distances(20 * k), distances_of_restored(20 * k);
  std::vector<Slot> slots(20 * k), slots_of_restored(20 * k);
  index.search(rows.data(), 20, k, 30, nullptr, 1, watch, {distances.data(), slots.data()});
  restored.search(rows.data(), 20, k, 30, nullptr, 1, watch,
                  {distances_of_restored.data(), slots_of_restored.data()});
  CHECK(distances == distances_of_restored);
  CHECK(slots == slots_of_restored);
}
