#include "spinney/loss/ranking.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "spinney/common/elementary.h"
#include "spinney/common/exp.h"
#include "spinney/common/log.h"

namespace spinney::loss {

namespace {

double gain_of(double relevance) { return common::exp2(relevance) - 1; }

double discount(std::size_t position) {
  return 1 / common::log2(static_cast<double>(position) + 2);
}

// Rows of a group by descending score; ties keep the order of the rows.
std::vector<std::size_t> sort_by_score(const LossData& data, std::size_t begin, std::size_t end) {
  std::vector<std::size_t> order(end - begin);
  std::iota(order.begin(), order.end(), begin);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return data.scores[a] > data.scores[b]; });
  return order;
}

// Discounted gain of the ideal order.
double ideal_gain(const LossData& data, std::size_t begin, std::size_t end, std::size_t cutoff) {
  std::vector<double> relevance(data.targets + begin, data.targets + end);
  std::sort(relevance.begin(), relevance.end(), std::greater<>());
  double sum = 0;
  for (std::size_t i = 0; i < std::min(cutoff, relevance.size()); ++i) {
    sum += gain_of(relevance[i]) * discount(i);
  }
  return sum;
}

double ndcg_loss(const RankingRules& rules, const LossData& data, std::size_t begin,
                 std::size_t end) {
  const double ideal = ideal_gain(data, begin, end, rules.ndcg_at);
  if (!(ideal > 0)) return std::numeric_limits<double>::quiet_NaN();
  const std::vector<std::size_t> order = sort_by_score(data, begin, end);
  double sum = 0;
  for (std::size_t i = 0; i < std::min(rules.ndcg_at, order.size()); ++i) {
    sum += gain_of(data.targets[order[i]]) * discount(i);
  }
  return 1 - sum / ideal;
}

double pairwise_loss(const LossData& data, std::size_t begin, std::size_t end) {
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

}  // namespace

void rank_derivatives(const RankingRules& rules, const LossData& data, std::size_t begin,
                      std::size_t end, const Derivatives& out) {
  const std::size_t n = end - begin;
  std::fill(out.gradient + begin, out.gradient + end, 0.0F);
  std::fill(out.hessian + begin, out.hessian + end, 0.0F);
  const double ideal = ideal_gain(data, begin, end, rules.ndcg_at);
  if (!(ideal > 0) && rules.by_gain) return;
  const std::vector<std::size_t> order = sort_by_score(data, begin, end);
  std::vector<double> gradient(n);
  std::vector<double> hessian(n);
  double size = 0;  // sum of |gradient| over pairs and rows
  // Unless all scores are equal, pairs count less the further apart their scores are.
  const bool scores_differ = data.scores[order.front()] != data.scores[order.back()];
  const std::size_t last = rules.by_gain ? std::min(rules.ndcg_at, n) : n;
  for (std::size_t i = 0; i < last; ++i) {
    for (std::size_t j = i + 1; j < n; ++j) {
      const std::size_t a = order[i];
      const std::size_t b = order[j];
      if (data.targets[a] == data.targets[b]) continue;
      const bool ordered = data.targets[a] > data.targets[b];
      const std::size_t high = ordered ? a : b;
      const std::size_t low = ordered ? b : a;
      const double difference = data.scores[high] - data.scores[low];
      double weight = 1;
      if (rules.by_gain) {
        weight = (gain_of(data.targets[high]) - gain_of(data.targets[low])) *
                 (discount(i) - discount(j)) / ideal;
        if (scores_differ) weight /= 0.01 + std::abs(difference);
      }
      const double p = 1 / (1 + common::exp(difference));  // probability of the wrong order
      const double g = weight * p;
      const double h = weight * p * (1 - p);
      gradient[high - begin] -= g;
      gradient[low - begin] += g;
      hessian[high - begin] += h;
      hessian[low - begin] += h;
      size += 2 * g;
    }
  }
  // Keep groups of many pairs from dominating the others.
  const double scale = size > 0 && rules.by_gain ? common::log2(1 + size) / size : 1.0;
  for (std::size_t i = 0; i < n; ++i) {
    out.gradient[begin + i] = static_cast<float>(gradient[i] * scale);
    out.hessian[begin + i] = static_cast<float>(hessian[i] * scale);
  }
}

double rank_loss(const RankingRules& rules, const LossData& data, std::size_t begin,
                 std::size_t end) {
  return rules.by_gain ? ndcg_loss(rules, data, begin, end) : pairwise_loss(data, begin, end);
}

}  // namespace spinney::loss
