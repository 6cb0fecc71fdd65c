// Fuzzes the reading of HNSW graphs from arrays, as in a file with a valid checksum. For any
// bytes, the constructor must throw InputError or build an index that can be searched and
// extended.
//
// An input is six bytes of options, the arrays of HnswState in order (two bytes for the number of
// elements, then the elements), then scale, top and ground. make_corpus.py writes such inputs.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "fuzz_bytes.h"
#include "spinney/common/check.h"
#include "spinney/neighbors/hnsw.h"

using namespace spinney;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  neighbors::HnswOptions options;
  options.metric = static_cast<neighbors::SearchMetric>(bytes.byte() % 3);
  options.n_links = 2 + bytes.byte() % 16;
  options.ef_construction = 1 + bytes.byte() % 32;
  options.has_codes =
      bytes.byte() % 2 == 1 && options.metric != neighbors::SearchMetric::inner_product;
  const std::size_t n_features = 1 + bytes.byte() % 8;
  const bool grows = bytes.byte() % 4 == 0;
  const auto vectors = bytes.array<float>();
  const auto links = bytes.array<neighbors::Slot>();
  const auto post_slots = bytes.array<neighbors::Slot>();
  const auto post_levels = bytes.array<std::uint8_t>();
  const auto post_links = bytes.array<neighbors::Post>();
  const auto deleted = bytes.array<std::uint8_t>();
  const auto code_offsets = bytes.array<float>();
  const auto scale = bytes.array<double>();
  const auto entries = bytes.array<std::uint32_t>();
  const neighbors::HnswState state{vectors,
                                   links,
                                   post_slots,
                                   post_levels,
                                   post_links,
                                   deleted,
                                   code_offsets,
                                   scale.empty() ? 1.0 : scale[0],
                                   entries.empty() ? 0 : entries[0],
                                   entries.size() < 2 ? 0 : entries[1]};
  try {
    neighbors::Hnsw index(options, n_features, state);
    common::Watch watch;
    const std::vector<float> queries(2 * n_features, 0.25F);
    std::vector<float> distances(2 * 3);
    std::vector<neighbors::Slot> slots(2 * 3);
    index.search(queries.data(), 2, 3, 8, nullptr, 1, watch, {distances.data(), slots.data()});
    index.search_exactly(queries.data(), 2, 3, nullptr, 1, watch, {distances.data(), slots.data()});
    if (grows) {
      index.add(queries.data(), 2, 1, watch);
      index.reorder();
    }
    for (const neighbors::Slot slot : slots) {
      if (slot != neighbors::no_slot && slot >= index.size()) std::abort();
    }
  } catch (const common::InputError&) {
  }
  return 0;
}
