#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "spinney/common/check.h"
#include "spinney/common/random.h"
#include "spinney/distance/gower.h"
#include "spinney/distance/nearest.h"
#include "spinney/distance/string_distances.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::distance;

namespace {

constexpr double missing = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST(nearest_breaks_ties_by_the_smaller_index) {
  const std::vector<double> matrix = {2, 1, 2, 1, missing, 1, 0};
  std::vector<double> distances(5);
  std::vector<std::int64_t> columns(5);
  select_nearest(matrix.data(), 1, 7, 5, 1, distances.data(), columns.data());
  CHECK((columns == std::vector<std::int64_t>{6, 1, 3, 5, 0}));
  CHECK((distances == std::vector<double>{0, 1, 1, 1, 2}));
  distances.resize(7);
  columns.resize(7);
  select_nearest(matrix.data(), 1, 7, 7, 1, distances.data(), columns.data());
  CHECK(columns.back() == 4);  // NaN comes last
  bool refused = false;
  try {
    select_nearest(matrix.data(), 1, 7, 8, 1, distances.data(), columns.data());
  } catch (const common::InputError&) {
    refused = true;
  }
  CHECK(refused);
}

TEST(gower_ignores_missing_values) {
  // Three rows of two columns: numbers with a range of 4, and categories.
  const std::vector<double> numbers = {0, 4, missing}, query_numbers = {1, missing};
  const std::vector<std::int32_t> codes = {0, -1, -1}, query_codes = {MixedRows::unseen, -1};
  const double scale = 0.25, weight = 1;
  const bool misses = true;
  const MixedColumns columns{1, 1, &scale, &weight, &weight, &misses, &misses};
  const MixedRows rows{numbers.data(), codes.data(), 3};
  const MixedRows queries{query_numbers.data(), query_codes.data(), 2};
  std::vector<double> all(6);
  gower_distances(columns, queries, rows, 1, all.data());
  CHECK((all == std::vector<double>{0.625, 0.75, 1, 1, 1, 1}));
  std::vector<double> distances(4);
  std::vector<std::int64_t> indices(4);
  find_nearest_gower(columns, queries, rows, 2, 1, distances.data(), indices.data());
  CHECK((indices == std::vector<std::int64_t>{0, 1, 0, 1}));
  CHECK((distances == std::vector<double>{0.625, 0.75, 1, 1}));
}

TEST(edit_pattern_matches_edit_distance) {
  for (const std::size_t length : {0u, 1u, 63u, 64u, 65u, 90u}) {
    std::vector<std::uint32_t> pattern(length), text(70);
    for (std::size_t i = 0; i < length; ++i) pattern[i] = static_cast<std::uint32_t>(i * i % 5);
    for (std::size_t i = 0; i < 70; ++i) text[i] = static_cast<std::uint32_t>(i * i % 7) + 300;
    for (std::size_t i = 0; i < 70; i += 2) text[i] -= 300;
    const EditPattern many(pattern);
    for (std::size_t n = 0; n <= 70; n += 7) {
      const Characters part = Characters(text).first(n);
      CHECK(many.distance(part) == edit_distance(pattern, part));
    }
  }
}

TEST(nearest_matches_a_full_sort) {
  common::Stream stream(1, common::Purpose::rows, 0);
  std::vector<double> distances(500);
  for (double& value : distances) {
    value = stream.below(20) == 0 ? missing : static_cast<double>(stream.below(40));
  }
  std::vector<std::pair<double, RowIndex>> sorted;
  for (std::size_t i = 0; i < distances.size(); ++i) {
    const double value = distances[i];
    sorted.emplace_back(value == value ? value : std::numeric_limits<double>::infinity(), i);
  }
  std::sort(sorted.begin(), sorted.end());
  for (const std::size_t k : {1u, 5u, 32u, 33u, 100u, 500u}) {  // lists and heaps
    Nearest by_block(k), one_by_one(k);
    for (std::size_t first = 0; first < 500; first += 125) {
      by_block.add_block(distances.data() + first, 125, static_cast<RowIndex>(first));
    }
    for (std::size_t i = 500; i-- > 0;) {
      one_by_one.add(
          distances[i] == distances[i] ? distances[i] : std::numeric_limits<double>::infinity(),
          static_cast<RowIndex>(i));
    }
    for (Nearest* const nearest : {&by_block, &one_by_one}) {
      std::vector<double> out(k);
      std::vector<RowIndex> indices(k);
      nearest->drain(out.data(), indices.data());
      int n_different = 0;
      for (std::size_t i = 0; i < k; ++i) {
        n_different += out[i] != sorted[i].first || indices[i] != sorted[i].second;
      }
      CHECK(n_different == 0);
    }
  }
}
