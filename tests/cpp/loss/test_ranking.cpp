#include "spinney/loss/ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "spinney/common/random.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::loss;

namespace {

struct Group {
  std::vector<double> relevance;
  std::vector<double> scores;

  LossData data() const { return {relevance.data(), nullptr, scores.data(), relevance.size()}; }
};

Group random_group(std::uint64_t seed, std::size_t n, bool ties) {
  common::Stream stream(seed, common::Purpose::rows, n);
  Group group;
  for (std::size_t i = 0; i < n; ++i) {
    group.relevance.push_back(static_cast<double>(stream.below(4)));
    group.scores.push_back(ties ? static_cast<double>(stream.below(3)) : 4 * stream.uniform() - 2);
  }
  return group;
}

// Position of row i: the number of rows with a higher score, or an equal one and a smaller index.
std::size_t position_of(const std::vector<double>& scores, std::size_t i) {
  std::size_t position = 0;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    if (scores[j] > scores[i] || (scores[j] == scores[i] && j < i)) ++position;
  }
  return position;
}

double gain_at(double relevance, std::size_t position, std::size_t cutoff) {
  return position < cutoff
             ? (std::pow(2, relevance) - 1) / std::log2(static_cast<double>(position) + 2)
             : 0.0;
}

double slow_dcg(const std::vector<double>& relevance, const std::vector<double>& order_by,
                std::size_t cutoff) {
  double sum = 0;
  for (std::size_t i = 0; i < relevance.size(); ++i) {
    sum += gain_at(relevance[i], position_of(order_by, i), cutoff);
  }
  return sum;
}

struct SlowDerivatives {
  std::vector<double> gradient, hessian;
};

// Every pair of rows, one after another.
SlowDerivatives slow_derivatives(const RankingRules& rules, const Group& group) {
  const std::vector<double>& y = group.relevance;
  const std::vector<double>& f = group.scores;
  const std::size_t n = y.size();
  const double ideal = slow_dcg(y, y, rules.ndcg_at);
  const auto [low, high] = std::minmax_element(f.begin(), f.end());
  SlowDerivatives out{std::vector<double>(n), std::vector<double>(n)};
  double size = 0;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      if (!(y[i] > y[j])) continue;
      const std::size_t a = position_of(f, i);
      const std::size_t b = position_of(f, j);
      double weight = 1;
      if (rules.by_gain) {
        if (std::min(a, b) >= rules.ndcg_at) continue;
        const double discounts = std::abs(1 / std::log2(static_cast<double>(a) + 2) -
                                          1 / std::log2(static_cast<double>(b) + 2));
        weight = (std::pow(2, y[i]) - std::pow(2, y[j])) * discounts / ideal;
        if (*low < *high) weight /= 0.01 + std::abs(f[i] - f[j]);
      }
      const double p = 1 / (1 + std::exp(f[i] - f[j]));
      out.gradient[i] -= weight * p;
      out.gradient[j] += weight * p;
      out.hessian[i] += weight * p * (1 - p);
      out.hessian[j] += weight * p * (1 - p);
      size += 2 * weight * p;
    }
  }
  const double scale = rules.by_gain && size > 0 ? std::log2(1 + size) / size : 1;
  for (double& g : out.gradient) g *= scale;
  for (double& h : out.hessian) h *= scale;
  return out;
}

}  // namespace

TEST(ranking_derivatives_match_a_loop_over_all_pairs) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (const bool ties : {false, true}) {
      for (const RankingRules rules :
           {RankingRules{true, 30}, RankingRules{true, 3}, RankingRules{false, 30}}) {
        const Group group = random_group(seed, 2 + seed, ties);
        const std::size_t n = group.scores.size();
        std::vector<float> gradient(n, 9), hessian(n, 9);
        rank_derivatives(rules, group.data(), 0, n, {gradient.data(), hessian.data()});
        const SlowDerivatives expected = slow_derivatives(rules, group);
        for (std::size_t i = 0; i < n; ++i) {
          CHECK_NEAR(static_cast<double>(gradient[i]), expected.gradient[i],
                     1e-5 * (1 + std::abs(expected.gradient[i])));
          CHECK_NEAR(static_cast<double>(hessian[i]), expected.hessian[i],
                     1e-5 * (1 + expected.hessian[i]));
        }
      }
    }
  }
}

TEST(ranking_losses_match_their_definitions) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Group group = random_group(seed, 3 + seed, seed % 2 == 0);
    const std::size_t n = group.scores.size();
    for (const std::size_t cutoff : {std::size_t{2}, std::size_t{30}}) {
      const double ideal = slow_dcg(group.relevance, group.relevance, cutoff);
      const double loss = rank_loss({true, cutoff}, group.data(), 0, n);
      if (ideal > 0) {
        CHECK_NEAR(loss, 1 - slow_dcg(group.relevance, group.scores, cutoff) / ideal, 1e-12);
      } else {
        CHECK(std::isnan(loss));
      }
    }
    double sum = 0;
    double n_pairs = 0;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        if (!(group.relevance[i] > group.relevance[j])) continue;
        sum += std::log1p(std::exp(group.scores[j] - group.scores[i]));
        n_pairs += 1;
      }
    }
    const double loss = rank_loss({false, 30}, group.data(), 0, n);
    CHECK(n_pairs > 0 ? std::abs(loss - sum / n_pairs) < 1e-12 : std::isnan(loss));
  }
}

// The gradient of the pairwise loss is that of the sum over pairs.
TEST(pairwise_gradient_matches_finite_differences) {
  Group group = random_group(5, 12, false);
  const std::size_t n = group.scores.size();
  double n_pairs = 0;
  for (const double a : group.relevance) {
    for (const double b : group.relevance) n_pairs += a > b ? 1 : 0;
  }
  std::vector<float> gradient(n), hessian(n);
  rank_derivatives({false, 30}, group.data(), 0, n, {gradient.data(), hessian.data()});
  for (std::size_t i = 0; i < n; ++i) {
    constexpr double step = 1e-4;
    const double score = group.scores[i];
    const auto loss_at = [&](double shifted) {
      group.scores[i] = shifted;
      return n_pairs * rank_loss({false, 30}, group.data(), 0, n);
    };
    const double above = loss_at(score + step);
    const double below = loss_at(score - step);
    const double here = loss_at(score);
    CHECK_NEAR(static_cast<double>(gradient[i]), (above - below) / (2 * step), 1e-5);
    CHECK_NEAR(static_cast<double>(hessian[i]), (above - 2 * here + below) / (step * step), 1e-4);
  }
}

TEST(ranking_gradients_separate_misordered_pairs) {
  const std::vector<double> targets{0, 2, 1};
  const std::vector<double> scores{1.0, 0.0, 0.5};
  const LossData data{targets.data(), nullptr, scores.data(), 3};
  float gradient[3];
  float hessian[3];
  for (const bool by_gain : {true, false}) {
    rank_derivatives({by_gain, 30}, data, 0, 3, {gradient, hessian});
    CHECK(gradient[0] > 0 && gradient[1] < 0);
    CHECK(std::abs(gradient[0] + gradient[1] + gradient[2]) < 1e-6F);
    CHECK(hessian[0] > 0 && hessian[1] > 0 && hessian[2] > 0);
  }
}

TEST(huge_score_differences_have_finite_ranking_derivatives) {
  const std::vector<double> targets{1, 0};
  for (const double far : {1e4, -1e4}) {
    const std::vector<double> scores{far, 0};
    const LossData data{targets.data(), nullptr, scores.data(), 2};
    float gradient[2];
    float hessian[2];
    for (const bool by_gain : {true, false}) {
      rank_derivatives({by_gain, 30}, data, 0, 2, {gradient, hessian});
      for (int i = 0; i < 2; ++i) {
        CHECK(std::isfinite(gradient[i]) && std::isfinite(hessian[i]) && hessian[i] >= 0);
      }
      CHECK(far > 0 ? std::abs(gradient[0]) < 1e-6F : gradient[0] < 0);
    }
    CHECK(std::isfinite(rank_loss({false, 30}, data, 0, 2)));
  }
}

TEST(groups_without_order_have_no_loss) {
  const std::vector<double> zeros(4, 0.0);
  const std::vector<double> scores{1, 2, 3, 4};
  const LossData data{zeros.data(), nullptr, scores.data(), 4};
  std::vector<float> gradient(4, 9), hessian(4, 9);
  for (const bool by_gain : {true, false}) {
    rank_derivatives({by_gain, 30}, data, 0, 4, {gradient.data(), hessian.data()});
    CHECK(gradient == std::vector<float>(4) && hessian == std::vector<float>(4));
    CHECK(std::isnan(rank_loss({by_gain, 30}, data, 0, 4)));
  }
}
