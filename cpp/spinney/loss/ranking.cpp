#include "spinney/loss/ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "spinney/common/exp.h"
#include "spinney/common/log.h"

namespace spinney::loss {

namespace {

double gain_of(double relevance) { return std::exp2(relevance) - 1; }

double discount(std::size_t place) { return 1 / std::log2(static_cast<double>(place) + 2); }

// Rows of a group by falling score, the first of equals first.
std::vector<std::size_t> by_score(const LossData& data, std::size_t begin, std::size_t end) {
  std::vector<std::size_t> order(end - begin);
  std::iota(order.begin(), order.end(), begin);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return data.scores[a] > data.scores[b]; });
  return order;
}

// The discounted gain of the best order.
double best_gain(const LossData& data, std::size_t begin, std::size_t end, std::size_t places) {
  std::vector<double> relevance(data.targets + begin, data.targets + end);
  std::sort(relevance.begin(), relevance.end(), std::greater<>());
  double sum = 0;
  for (std::size_t i = 0; i < std::min(places, relevance.size()); ++i) {
    sum += gain_of(relevance[i]) * discount(i);
  }
  return sum;
}

}  // namespace

void rank_derivatives(const RankingRules& rules, const LossData& data, std::size_t begin,
                      std::size_t end, const Derivatives& out) {
  const std::size_t n = end - begin;
  std::fill(out.first + begin, out.first + end, 0.0F);
  std::fill(out.second + begin, out.second + end, 0.0F);
  const double best = best_gain(data, begin, end, rules.places);
  if (!(best > 0) && rules.by_gain) return;
  const std::vector<std::size_t> order = by_score(data, begin, end);
  std::vector<double> first(n);
  std::vector<double> second(n);
  double size = 0;
  // Large differences of scores are no reason to push further.
  const bool spread = data.scores[order.front()] != data.scores[order.back()];
  const std::size_t last = rules.by_gain ? std::min(rules.places, n) : n;
  for (std::size_t i = 0; i < last; ++i) {
    for (std::size_t j = i + 1; j < n; ++j) {
      const std::size_t a = order[i];
      const std::size_t b = order[j];
      if (data.targets[a] == data.targets[b]) continue;
      const bool right = data.targets[a] > data.targets[b];
      const std::size_t high = right ? a : b;
      const std::size_t low = right ? b : a;
      const double difference = data.scores[high] - data.scores[low];
      double weight = 1;
      if (rules.by_gain) {
        weight = (gain_of(data.targets[high]) - gain_of(data.targets[low])) *
                 (discount(i) - discount(j)) / best;
        if (spread) weight /= 0.01 + std::abs(difference);
      }
      const double p = 1 / (1 + common::exp(difference));  // that the order is wrong
      const double push = weight * p;
      const double curve = weight * p * (1 - p);
      first[high - begin] -= push;
      first[low - begin] += push;
      second[high - begin] += curve;
      second[low - begin] += curve;
      size += 2 * push;
    }
  }
  // Groups of many pairs must not drown the others.
  const double scale = size > 0 && rules.by_gain ? std::log2(1 + size) / size : 1.0;
  for (std::size_t i = 0; i < n; ++i) {
    out.first[begin + i] = static_cast<float>(first[i] * scale);
    out.second[begin + i] = static_cast<float>(second[i] * scale);
  }
}

double rank_loss(const RankingRules& rules, const LossData& data, std::size_t begin,
                 std::size_t end) {
  if (rules.by_gain) {
    const double best = best_gain(data, begin, end, rules.places);
    if (!(best > 0)) return std::numeric_limits<double>::quiet_NaN();
    const std::vector<std::size_t> order = by_score(data, begin, end);
    double sum = 0;
    for (std::size_t i = 0; i < std::min(rules.places, order.size()); ++i) {
      sum += gain_of(data.targets[order[i]]) * discount(i);
    }
    return 1 - sum / best;
  }
  double sum = 0;
  std::size_t n_pairs = 0;
  for (std::size_t i = begin; i < end; ++i) {
    for (std::size_t j = begin; j < end; ++j) {
      if (!(data.targets[i] > data.targets[j])) continue;
      const double difference = data.scores[i] - data.scores[j];
      const double e = common::exp(-std::abs(difference));
      sum += (difference < 0 ? -difference : 0.0) + common::log(1 + e);
      ++n_pairs;
    }
  }
  return n_pairs > 0 ? sum / static_cast<double>(n_pairs)
                     : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace spinney::loss
