// An index out of arrays that came from a file: nothing in them is believed.
#include <algorithm>
#include <cmath>

#include "spinney/common/check.h"
#include "spinney/neighbors/hnsw.h"

namespace spinney::neighbors {

namespace {

void require(bool holds, const char* message) {
  if (!holds) throw common::InputError(message);
}

// Rows of numbers below `n`, then padding.
template <class Below>
void check_row(std::span<const std::uint32_t> row, const Below& is_valid) {
  const auto end = std::find(row.begin(), row.end(), no_slot);
  require(std::all_of(row.begin(), end, is_valid), "Hnsw: a link is out of range");
  require(std::all_of(end, row.end(), [](std::uint32_t i) { return i == no_slot; }),
          "Hnsw: a row of links has a gap");
}

}  // namespace

Hnsw::Hnsw(const HnswOptions& options, std::size_t n_features, const HnswState& state)
    : Hnsw(options, n_features) {
  require(state.vectors.size() % n_features == 0, "Hnsw: vectors have the wrong size");
  const std::size_t n = state.vectors.size() / n_features;
  require(n < max_vectors, "Hnsw: too many vectors");
  require(std::all_of(state.vectors.begin(), state.vectors.end(),
                      [](float value) { return std::isfinite(value); }),
          "Hnsw: a vector is not finite");
  require(state.links.size() == n * graph_.width, "Hnsw: links have the wrong size");
  require(state.deleted.empty() || state.deleted.size() == n, "Hnsw: deleted has the wrong size");
  for (std::size_t i = 0; i < n; ++i) {
    check_row(state.links.subspan(i * graph_.width, graph_.width),
              [n](std::uint32_t slot) { return slot < n; });
  }
  UpperLayers& upper = graph_.upper;
  const std::size_t n_posts = state.post_slots.size();
  require(n_posts <= n && state.post_levels.size() == n_posts, "Hnsw: posts differ in number");
  std::size_t n_post_links = 0;
  for (std::size_t post = 0; post < n_posts; ++post) {
    require(state.post_slots[post] < n, "Hnsw: a post is out of range");
    require(state.post_levels[post] >= 1, "Hnsw: a post stands on no layer");
    n_post_links += state.post_levels[post] * upper.width;
  }
  require(n_post_links == state.post_links.size(), "Hnsw: post links have the wrong size");
  for (std::size_t post = 0; post < n_posts; ++post) {
    upper.add(state.post_slots[post], state.post_levels[post]);
  }
  std::copy(state.post_links.begin(), state.post_links.end(), upper.links.begin());
  for (Post post = 0; post < n_posts; ++post) {
    for (std::size_t level = 1; level <= upper.levels[post]; ++level) {
      check_row({upper.row(post, level), upper.width}, [&](std::uint32_t other) {
        return other < n_posts && upper.levels[other] >= level;
      });
    }
  }
  require(n_posts == 0 ? state.top == no_slot : state.top < n_posts, "Hnsw: no such top");
  require(n == 0 ? state.ground == 0 : state.ground < n, "Hnsw: no such ground");
  graph_.top = state.top;
  graph_.ground = state.ground;
  graph_.size = n;
  if (options.has_codes && n > 0) {
    require(state.code_offsets.size() == n_features, "Hnsw: offsets have the wrong size");
    require(std::isfinite(state.code_scale) && state.code_scale > 0, "Hnsw: bad scale of codes");
    require(std::all_of(state.code_offsets.begin(), state.code_offsets.end(),
                        [](float value) { return std::isfinite(value); }),
            "Hnsw: an offset is not finite");
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
