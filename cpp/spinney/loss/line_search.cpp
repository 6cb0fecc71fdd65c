#include "spinney/loss/line_search.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace spinney::loss {

namespace {

double quantile(std::span<double> values, double level) {
  const std::size_t n = values.size();
  const double position = level * static_cast<double>(n);
  auto k = static_cast<std::size_t>(std::ceil(position));
  const bool between = static_cast<double>(k) == position && k >= 1 && k < n;
  k = std::clamp<std::size_t>(k, 1, n) - 1;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(k);
  std::nth_element(values.begin(), at, values.end());
  if (!between) return *at;
  return 0.5 * (*at + *std::min_element(at + 1, values.end()));
}

}  // namespace

double weighted_quantile(std::span<double> values, std::span<const std::int64_t> weights,
                         double level) {
  if (weights.empty()) return quantile(values, level);
  const std::size_t n = values.size();
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return values[a] < values[b] || (values[a] == values[b] && a < b);
  });
  const std::int64_t total = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
  const double wanted = level * static_cast<double>(total);
  std::int64_t below = 0;
  for (std::size_t k = 0; k < n; ++k) {
    below += weights[order[k]];
    if (static_cast<double>(below) < wanted) continue;
    const bool between = static_cast<double>(below) == wanted && k + 1 < n;
    return between ? 0.5 * (values[order[k]] + values[order[k + 1]]) : values[order[k]];
  }
  return values[order[n - 1]];
}

double search_level(const Loss& loss) {
  return loss.kind == LossKind::quantile ? loss.parameter : 0.5;
}

double huber_units_in_one(const Loss& loss, double largest_weight, std::uint64_t n) {
  return common::units_in_one(loss.parameter * largest_weight, n);
}

std::int64_t huber_sum(const Loss& loss, std::span<const double> residuals,
                       std::span<const std::int64_t> weights, bool repeats, double median,
                       double units) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    const std::int64_t weight = weights.empty() ? 1 : weights[i];
    const double clipped = std::clamp(residuals[i] - median, -loss.parameter, loss.parameter);
    sum += repeats ? weight * common::nearest(clipped * units)
                   : common::nearest(static_cast<double>(weight) * clipped * units);
  }
  return sum;
}

}  // namespace spinney::loss
