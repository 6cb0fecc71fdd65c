#include <algorithm>
#include <numeric>
#include <vector>

#include "spinney/common/check.h"
#include "spinney/common/random.h"
#include "spinney/neighbors/hnsw.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::neighbors;

namespace {

std::vector<float> draw_vectors(std::size_t n, std::size_t n_features, std::uint64_t seed) {
  common::Stream stream(seed, common::Purpose::rows, 0);
  std::vector<float> out(n * n_features);
  for (float& value : out) value = static_cast<float>(stream.uniform()) - 0.5F;
  return out;
}

struct Found {
  std::vector<float> distances;
  std::vector<Slot> slots;
};

Found search(const Hnsw& index, const std::vector<float>& queries, std::size_t k, std::size_t ef,
             const std::uint8_t* allowed, bool exact, int n_threads = 1) {
  const std::size_t n = queries.size() / index.n_features();
  Found out{std::vector<float>(n * k), std::vector<Slot>(n * k)};
  common::Watch watch;
  const Hnsw::Results result{out.distances.data(), out.slots.data()};
  if (exact) {
    index.search_exactly(queries.data(), n, k, allowed, n_threads, watch, result);
  } else {
    index.search(queries.data(), n, k, ef, allowed, n_threads, watch, result);
  }
  return out;
}

double recall(const Found& found, const Found& truth, std::size_t k) {
  double hits = 0;
  for (std::size_t first = 0; first < truth.slots.size(); first += k) {
    for (std::size_t i = first; i < first + k; ++i) {
      const auto begin = truth.slots.begin() + static_cast<std::ptrdiff_t>(first);
      hits += std::count(begin, begin + static_cast<std::ptrdiff_t>(k), found.slots[i]) > 0;
    }
  }
  return hits / static_cast<double>(truth.slots.size());
}

bool is_refused(const HnswOptions& options, const HnswState& state) {
  try {
    const Hnsw index(options, 2, state);
    return false;
  } catch (const common::InputError&) {
    return true;
  }
}

}  // namespace

TEST(hnsw_has_a_high_recall) {
  for (const SearchMetric metric :
       {SearchMetric::euclidean, SearchMetric::cosine, SearchMetric::inner_product}) {
    for (const bool has_codes : {false, true}) {
      if (has_codes && metric == SearchMetric::inner_product) continue;
      for (const std::size_t n_features : {std::size_t{3}, std::size_t{16}, std::size_t{37}}) {
        HnswOptions options;
        options.metric = metric;
        options.has_codes = has_codes;
        options.ef_construction = 60;
        Hnsw one(options, n_features), two(options, n_features);
        const auto vectors = draw_vectors(1500, n_features, 1);
        const auto queries = draw_vectors(50, n_features, 2);
        common::Watch watch;
        one.add(vectors.data(), 1000, 1, watch);
        one.add(vectors.data() + 1000 * n_features, 500, 1, watch);
        two.add(vectors.data(), 1000, 3, watch);
        two.add(vectors.data() + 1000 * n_features, 500, 3, watch);
        CHECK(std::equal(one.graph().row(0), one.graph().row(1500), two.graph().row(0)));
        CHECK(one.graph().upper.links == two.graph().upper.links);
        const Found truth = search(one, queries, 5, 0, nullptr, true);
        CHECK(recall(search(one, queries, 5, 150, nullptr, false), truth, 5) > 0.9);
        two.reorder();
        const Found again = search(two, queries, 5, 150, nullptr, false, 3);
        CHECK(again.distances == search(two, queries, 5, 150, nullptr, false).distances);
        std::vector<Slot> gone(700);
        std::iota(gone.begin(), gone.end(), 0);
        one.erase(gone);
        std::vector<std::uint8_t> odd(1500);
        for (std::size_t i = 0; i < odd.size(); ++i) odd[i] = i % 2;
        const Found left = search(one, queries, 5, 20, odd.data(), false);
        CHECK(std::all_of(left.slots.begin(), left.slots.end(),
                          [](Slot slot) { return slot >= 700 && slot % 2 == 1; }));
      }
    }
  }
}

TEST(hnsw_rejects_invalid_states) {
  HnswOptions options;
  options.M = 2;
  const std::vector<float> vectors(6, 0.5F);
  std::vector<Slot> links(12, no_slot);
  HnswState state{};
  state.vectors = vectors;
  state.links = links;
  state.entry_node = no_slot;
  CHECK(Hnsw(options, 2, state).size() == 3);
  links[4] = 3;
  CHECK(is_refused(options, state));
  links[4] = no_slot;
  links[5] = 0;
  CHECK(is_refused(options, state));
  links[5] = no_slot;
  state.entry_node = 0;
  CHECK(is_refused(options, state));
  state.entry_node = no_slot;
  state.base_entry = 3;
  CHECK(is_refused(options, state));
}
