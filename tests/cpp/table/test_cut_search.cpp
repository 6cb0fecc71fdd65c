#include "spinney/table/cut_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "spinney/common/random.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::table;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Compares with a linear count at the cuts, their neighbours and other values.
void check_cuts(std::vector<double> cuts) {
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::vector<double> values{0.0, -0.0, 1e-310, -1e-310, 1e308, -1e308, infinity, -infinity};
  for (const double cut : cuts) {
    values.insert(values.end(), {cut, std::nextafter(cut, infinity), std::nextafter(cut, -infinity),
                                 cut * 1.001, cut / 2});
  }
  for (std::size_t i = 1; i < cuts.size(); ++i) values.push_back(cuts[i - 1] / 2 + cuts[i] / 2);
  const CutSearch search(cuts);
  std::vector<std::uint8_t> out(values.size(), 99);
  count_below(values.data(), values.size(), search, out.data());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto expected =
        std::count_if(cuts.begin(), cuts.end(), [&](double cut) { return cut < values[i]; });
    CHECK(out[i] == expected);
  }
}

}  // namespace

TEST(cut_search_counts_cuts_below_each_value) {
  common::Stream stream(1, common::Purpose::rows, 0);
  for (const std::size_t n : {0, 1, 2, 3, 4, 7, 8, 63, 64, 65, 200, 254}) {
    std::vector<double> uniform;
    std::vector<double> skewed;
    std::vector<double> integers;
    for (std::size_t i = 0; i < n; ++i) {
      uniform.push_back(stream.uniform() * 10 - 5);
      skewed.push_back(std::exp(40 * stream.uniform()));
      integers.push_back(static_cast<double>(i));
    }
    check_cuts(uniform);
    check_cuts(skewed);
    check_cuts(integers);
  }
}

TEST(cut_search_supports_extreme_ranges) {
  check_cuts({-1e308, 0.0, 1e308});  // the range overflows
  check_cuts({0.0, 5e-324, 1e-323});
  check_cuts({1.0, std::nextafter(1.0, 2.0), std::nextafter(1.0, 0.0)});
  check_cuts({-1e300, 1e-300, 2e-300, 1e300});
  std::vector<double> dense{1e9};  // all cuts but one in a cell
  for (int i = 0; i < 253; ++i) dense.push_back(i * 1e-6);
  check_cuts(dense);
}

TEST(cut_search_counts_no_cut_below_nan) {
  const std::vector<double> cuts{-2, -1, 3};
  const CutSearch search(cuts);
  const double value = std::numeric_limits<double>::quiet_NaN();
  std::uint8_t out = 9;
  count_below(&value, 1, search, &out);
  CHECK(out == 0);
}

TEST(a_cut_is_between_its_values) {
  CHECK(between(1.0, 2.0) == 1.5);
  CHECK(between(-1e308, 1e308) == 0.0);
  const double next = std::nextafter(1.0, 2.0);
  CHECK(between(1.0, next) == 1.0);
  const double low = 0.1;
  const double high = 0.1 + 1e-9;
  const double cut = between(low, high);
  CHECK(low <= cut && cut < high);
  CHECK(static_cast<double>(static_cast<float>(between(0.1, 0.2))) == between(0.1, 0.2));
  common::Stream stream(2, common::Purpose::rows, 0);
  for (int i = 0; i < 1000; ++i) {
    const double a = std::ldexp(stream.uniform() - 0.5, static_cast<int>(stream.below(100)) - 50);
    const double b = stream.below(2) == 0 ? std::nextafter(a, infinity) : a + stream.uniform();
    if (!(a < b)) continue;
    CHECK(a <= between(a, b) && between(a, b) < b);
  }
}
