#include "spinney/loss/line_search.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "spinney/common/random.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::loss;

TEST(quantiles_lie_between_values_like_medians) {
  const std::vector<double> values = {4, 1, 3, 2};
  const auto quantile = [&](double level) {
    std::vector<double> copy = values;
    return weighted_quantile(copy, {}, level);
  };
  CHECK(quantile(0.5) == 2.5 && quantile(0.25) == 1.5 && quantile(0.4) == 2);
  CHECK(quantile(0.0) == 1 && quantile(1.0) == 4 && quantile(0.99) == 4);
}

TEST(weighted_quantiles_equal_those_of_repeated_values) {
  common::Stream stream(6, common::Purpose::rows, 0);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<double> values, repeated;
    std::vector<std::int64_t> weights;
    for (std::size_t i = 0; i < 1 + stream.below(20); ++i) {
      values.push_back(static_cast<double>(stream.below(8)));
      weights.push_back(1 + static_cast<std::int64_t>(stream.below(4)));
      repeated.insert(repeated.end(), static_cast<std::size_t>(weights[i]), values[i]);
    }
    for (const double level : {0.1, 0.25, 0.5, 0.75, 0.9}) {
      std::vector<double> a = values, b = repeated;
      CHECK(weighted_quantile(a, weights, level) == weighted_quantile(b, {}, level));
    }
  }
}

TEST(huber_sum_adds_up_clipped_distances) {
  const Loss loss{.kind = LossKind::huber, .parameter = 2};
  const std::vector<double> residuals = {-5, 0.5, 1, 7};
  const std::vector<std::int64_t> weights = {1, 2, 3, 4};
  const double units = huber_units_in_one(loss, 4, residuals.size());
  const auto sum = [&](std::span<const std::int64_t> w, bool repeats) {
    return static_cast<double>(huber_sum(loss, residuals, w, repeats, 1, units)) / units;
  };
  CHECK(sum({}, false) == -2 - 0.5 + 0 + 2);
  CHECK(sum(weights, false) == -2 - 1 + 0 + 8);
  CHECK(sum(weights, true) == -2 - 1 + 0 + 8);
}
