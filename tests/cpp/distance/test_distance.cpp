#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "spinney/common/check.h"
#include "spinney/distance/closer.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::distance;

namespace {

std::int64_t edits(const std::u32string& a, const std::u32string& b) {
  const std::vector<std::uint32_t> u(a.begin(), a.end()), v(b.begin(), b.end());
  return edit_distance(u, v);
}

bool is_closer_by(VectorMetric metric, const std::vector<double>& x, const std::vector<double>& a,
                  const std::vector<double>& b) {
  std::vector<double> pivots = a;
  pivots.insert(pivots.end(), b.begin(), b.end());
  const std::vector<std::int64_t> zero = {0}, one = {1};
  bool out = false;
  find_closer(metric, {x.data(), 1, x.size()}, {pivots.data(), 2, x.size()}, {zero, zero, one}, 1,
              &out);
  return out;
}

}  // namespace

TEST(edit_distance_counts_edits) {
  CHECK(edits(U"", U"") == 0);
  CHECK(edits(U"", U"abc") == 3);
  CHECK(edits(U"kitten", U"sitting") == 3);
  CHECK(edits(U"\U0001f332a", U"\U0001f333a") == 1);
  const std::u32string tail(200, U'x');
  CHECK(edits(U"a" + tail + U"b", U"c" + tail + U"d") == 2);
  CHECK(edits(std::u32string(64, U'a'), std::u32string(64, U'b')) == 64);
  CHECK(edits(std::u32string(70, U'a'), std::u32string(90, U'b')) == 90);
}

TEST(closer_is_strict) {
  for (const auto metric :
       {VectorMetric::euclidean, VectorMetric::manhattan, VectorMetric::chebyshev}) {
    CHECK(is_closer_by(metric, {0, 0}, {0, 1}, {0, 2}));
    CHECK(!is_closer_by(metric, {0, 0}, {0, 2}, {0, 1}));
    CHECK(!is_closer_by(metric, {0, 0}, {0, 1}, {0, -1}));
    CHECK(is_closer_by(metric, {0, 0}, {0, 1e200}, {0, 2e200}));
    CHECK(is_closer_by(metric, {0, 0}, {0, 1e-200}, {0, 2e-200}));
    const double most = std::numeric_limits<double>::max();
    CHECK(is_closer_by(metric, {most, most}, {-most / 2, -most / 2}, {-most, -most}));
  }
  CHECK(is_closer_by(VectorMetric::cosine, {1, 0}, {0.6, 0.8}, {0, 1}));
}

TEST(closer_rejects_row_indices_out_of_range) {
  const double values[] = {0, 1};
  const std::vector<std::int64_t> good = {0}, bad = {2};
  bool out = false;
  bool refused = false;
  try {
    find_closer(VectorMetric::euclidean, {values, 2, 1}, {values, 2, 1}, {good, bad, good}, 1,
                &out);
  } catch (const common::InputError&) {
    refused = true;
  }
  CHECK(refused);
}

TEST(string_comparisons_do_not_depend_on_threads) {
  std::vector<std::uint32_t> characters;
  std::vector<std::int64_t> starts = {0};
  for (std::uint32_t i = 0; i < 40; ++i) {
    for (std::uint32_t j = 0; j <= i * 3; ++j) characters.push_back('a' + (i * j * j) % 5);
    starts.push_back(static_cast<std::int64_t>(characters.size()));
  }
  const Strings strings{characters.data(), starts.data(), 40};
  std::vector<std::int64_t> x, a, b;
  for (std::int64_t i = 0; i < 4000; ++i) {
    x.push_back(i % 40);
    a.push_back(i * 7 % 40);
    b.push_back(i * i % 40);
  }
  const auto compare = [&](StringMetric metric, int n_threads, bool* out) {
    find_closer(metric, strings, strings, {x, a, b}, n_threads, out);
  };
  for (const auto metric : {StringMetric::edit, StringMetric::hamming}) {
    const auto one = std::make_unique<bool[]>(x.size()), two = std::make_unique<bool[]>(x.size());
    compare(metric, 1, one.get());
    compare(metric, 3, two.get());
    bool same = true;
    for (std::size_t i = 0; i < x.size(); ++i) same = same && one[i] == two[i];
    CHECK(same);
  }
}
