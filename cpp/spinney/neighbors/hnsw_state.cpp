// Creates an index from the arrays of a file, after checking all of them.
#include <algorithm>
#include <cmath>

#include "spinney/common/check.h"
#include "spinney/neighbors/hnsw.h"

namespace spinney::neighbors {

namespace {

void require(bool holds, const char* message) {
  if (!holds) throw common::InputError(message);
}

// A row must have valid nodes first and padding after them.
template <class Below>
void check_row(std::span<const std::uint32_t> row, const Below& is_valid) {
  const auto end = std::find(row.begin(), row.end(), no_slot);
  require(std::all_of(row.begin(), end, is_valid), "HNSW: a link is out of range");
  require(std::all_of(end, row.end(), [](std::uint32_t i) { return i == no_slot; }),
          "HNSW: a link follows the padding of its row");
}

}  // namespace

Hnsw::Hnsw(const HnswOptions& options, std::size_t n_features, const HnswState& state)
    : Hnsw(options, n_features) {
  require(state.vectors.size() % n_features == 0, "HNSW: vectors have the wrong size");
  const std::size_t n = state.vectors.size() / n_features;
  require(n < max_vectors, "HNSW: too many vectors");
  require(std::all_of(state.vectors.begin(), state.vectors.end(),
                      [](float value) { return std::isfinite(value); }),
          "HNSW: a vector is not finite");
  require(state.links.size() == n * graph_.width, "HNSW: links have the wrong size");
  require(state.deleted.empty() || state.deleted.size() == n, "HNSW: deleted has the wrong size");
  for (std::size_t i = 0; i < n; ++i) {
    check_row(state.links.subspan(i * graph_.width, graph_.width),
              [n](std::uint32_t slot) { return slot < n; });
  }
  UpperLayers& upper = graph_.upper;
  const std::size_t n_upper_nodes = state.upper_slots.size();
  require(n_upper_nodes <= n && state.upper_levels.size() == n_upper_nodes,
          "HNSW: arrays of upper nodes differ in length");
  std::size_t n_upper_links = 0;
  for (std::size_t upper_node = 0; upper_node < n_upper_nodes; ++upper_node) {
    require(state.upper_slots[upper_node] < n, "HNSW: a slot of an upper node is out of range");
    require(state.upper_levels[upper_node] >= 1,
            "HNSW: the level of an upper node must be at least 1");
    n_upper_links += state.upper_levels[upper_node] * upper.width;
  }
  require(n_upper_links == state.upper_links.size(),
          "HNSW: links of upper nodes have the wrong size");
  for (std::size_t upper_node = 0; upper_node < n_upper_nodes; ++upper_node) {
    upper.add(state.upper_slots[upper_node], state.upper_levels[upper_node]);
  }
  std::copy(state.upper_links.begin(), state.upper_links.end(), upper.links.begin());
  for (UpperNode upper_node = 0; upper_node < n_upper_nodes; ++upper_node) {
    for (std::size_t level = 1; level <= upper.levels[upper_node]; ++level) {
      check_row({upper.row(upper_node, level), upper.width}, [&](std::uint32_t other) {
        return other < n_upper_nodes && upper.levels[other] >= level;
      });
    }
  }
  require(n_upper_nodes == 0 ? state.entry_node == no_slot : state.entry_node < n_upper_nodes,
          "HNSW: the entry point is out of range");
  require(n == 0 ? state.base_entry == 0 : state.base_entry < n,
          "HNSW: the entry point of the base layer is out of range");
  graph_.entry_node = state.entry_node;
  graph_.base_entry = state.base_entry;
  graph_.size = n;
  if (options.has_codes && n > 0) {
    require(state.code_offsets.size() == n_features, "HNSW: offsets have the wrong size");
    require(std::isfinite(state.code_scale) && state.code_scale > 0,
            "HNSW: code_scale must be positive and finite");
    require(std::all_of(state.code_offsets.begin(), state.code_offsets.end(),
                        [](float value) { return std::isfinite(value); }),
            "HNSW: an offset is not finite");
    store_.set_codes(state.code_scale, {state.code_offsets.begin(), state.code_offsets.end()});
  }
  store_.add(state.vectors.data(), n, true);
  graph_.links.resize(n * graph_.width);
  std::copy(state.links.begin(), state.links.end(), graph_.links.begin());
  deleted_.assign(state.deleted.begin(), state.deleted.end());
  for (std::uint8_t& flag : deleted_) {
    flag = flag != 0 ? 1 : 0;
    n_deleted_ += flag;
  }
}

}  // namespace spinney::neighbors
