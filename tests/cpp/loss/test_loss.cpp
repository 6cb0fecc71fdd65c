#include "spinney/loss/loss.h"

#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "spinney/common/fixed_point.h"
#include "spinney/common/random.h"
#include "spinney/loss/loss_targets.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::loss;

namespace {

const std::vector<Loss> smooth_losses = {
    {.kind = LossKind::squared_error},
    {.kind = LossKind::huber, .parameter = 0.7},
    {.kind = LossKind::poisson},
    {.kind = LossKind::gamma},
    {.kind = LossKind::tweedie, .parameter = 1.3},
    {.kind = LossKind::log_loss},
    {.kind = LossKind::exponential},
};

const std::vector<Loss> piecewise_linear_losses = {
    {.kind = LossKind::absolute_error},
    {.kind = LossKind::quantile, .parameter = 0.3},
};

// The loss of one score by its textbook formula.
double closed_form(const Loss& loss, double y, double f) {
  const double p = loss.parameter;
  switch (loss.kind) {
    case LossKind::squared_error:
      return (f - y) * (f - y) / 2;
    case LossKind::absolute_error:
      return std::abs(f - y);
    case LossKind::huber: {
      const double d = std::abs(f - y);
      return d <= p ? d * d / 2 : p * (d - p / 2);
    }
    case LossKind::quantile:
      return std::max(p * (y - f), (p - 1) * (y - f));
    case LossKind::poisson:
      return std::exp(f) - y * f;
    case LossKind::gamma:
      return f + y / std::exp(f);
    case LossKind::tweedie:
      return std::pow(std::exp(f), 2 - p) / (2 - p) - y * std::pow(std::exp(f), 1 - p) / (1 - p);
    case LossKind::log_loss: {
      const double probability = 1 / (1 + std::exp(-f));
      return -y * std::log(probability) - (1 - y) * std::log(1 - probability);
    }
    case LossKind::exponential:
      return std::exp(-(2 * y - 1) * f);
    case LossKind::softmax:
    case LossKind::ranking:
      break;
  }
  throw std::logic_error("no closed form");
}

// Targets that suit each loss, and scores near zero; more than one block of the kernels.
struct Sample {
  static constexpr std::size_t n = 700;
  std::vector<double> targets;
  std::vector<double> scores;
  std::vector<double> weights;

  explicit Sample(LossKind kind) {
    common::Stream stream(4, common::Purpose::rows, 0);
    for (std::size_t i = 0; i < n; ++i) {
      const double score = 4 * stream.uniform() - 2;
      double target = 0.1 + 3 * stream.uniform();
      if (kind == LossKind::log_loss) target = stream.uniform();
      if (kind == LossKind::exponential) target = static_cast<double>(stream.below(2));
      // Away from the points where the second derivative does not exist.
      if (kind == LossKind::huber) target = score + (i % 2 == 0 ? 0.3 : 2.0);
      targets.push_back(target);
      scores.push_back(score);
      weights.push_back(stream.uniform() + 0.5);
    }
  }

  LossData data(bool weighted) const {
    return {targets.data(), weighted ? weights.data() : nullptr, scores.data(), n};
  }
};

double sum_of(const Loss& loss, const LossData& data, std::size_t begin, std::size_t end) {
  const double largest = loss_sum(loss, data, begin, end, 1).largest;
  const double units = common::units_in_one(largest, end - begin);
  return static_cast<double>(loss_sum(loss, data, begin, end, units).units) / units;
}

double value_at(const Loss& loss, double target, double score) {
  return sum_of(loss, {&target, nullptr, &score, 1}, 0, 1);
}

struct Pair {
  float gradient;
  float hessian;
};

Pair derivatives_at(const Loss& loss, double target, double score) {
  Pair out{};
  differentiate(loss, {&target, nullptr, &score, 1}, 0, 1, {&out.gradient, &out.hessian});
  return out;
}

}  // namespace

TEST(losses_match_closed_forms) {
  for (const auto& losses : {smooth_losses, piecewise_linear_losses}) {
    for (const Loss& loss : losses) {
      const Sample sample(loss.kind);
      for (const bool weighted : {false, true}) {
        double expected = 0;
        for (std::size_t i = 10; i < 600; ++i) {
          const double weight = weighted ? sample.weights[i] : 1.0;
          expected += weight * closed_form(loss, sample.targets[i], sample.scores[i]);
        }
        CHECK_NEAR(sum_of(loss, sample.data(weighted), 10, 600), expected,
                   1e-10 * std::abs(expected));
      }
    }
  }
}

TEST(derivatives_match_finite_differences) {
  constexpr double step = 1e-4;
  for (const Loss& loss : smooth_losses) {
    const Sample sample(loss.kind);
    std::vector<float> gradient(Sample::n);
    std::vector<float> hessian(Sample::n);
    differentiate(loss, sample.data(true), 0, Sample::n, {gradient.data(), hessian.data()});
    for (std::size_t i = 0; i < Sample::n; ++i) {
      const auto value = [&](double shift) {
        return closed_form(loss, sample.targets[i], sample.scores[i] + shift);
      };
      const double slope = (value(step) - value(-step)) / (2 * step);
      CHECK_NEAR(static_cast<double>(gradient[i]), slope, 1e-5 * (1 + std::abs(slope)));
      if (loss.kind == LossKind::huber) {
        CHECK(hessian[i] == 1);
        continue;
      }
      const double curvature = (value(step) - 2 * value(0) + value(-step)) / (step * step);
      CHECK_NEAR(static_cast<double>(hessian[i]), curvature, 1e-4 * (1 + curvature));
    }
  }
}

TEST(derivatives_of_piecewise_linear_losses) {
  for (const double score : {0.0, 1.0, 3.0}) {
    const double sign = score < 1 ? -1 : score > 1 ? 1 : 0;
    const Pair absolute = derivatives_at(piecewise_linear_losses[0], 1, score);
    CHECK(absolute.gradient == static_cast<float>(sign) && absolute.hessian == 1);
    const Pair quantile = derivatives_at(piecewise_linear_losses[1], 1, score);
    const double expected = score < 1 ? -0.3 : score > 1 ? 0.7 : 0.0;
    CHECK(quantile.gradient == static_cast<float>(expected) && quantile.hessian == 1);
  }
}

TEST(one_pass_gives_the_bits_of_two) {
  for (const auto& losses : {smooth_losses, piecewise_linear_losses}) {
    for (const Loss& loss : losses) {
      const Sample sample(loss.kind);
      for (const bool weighted : {false, true}) {
        const LossData data = sample.data(weighted);
        std::vector<float> gradient(Sample::n), hessian(Sample::n);
        std::vector<float> same_gradient(Sample::n), same_hessian(Sample::n);
        differentiate(loss, data, 3, 690, {gradient.data(), hessian.data()});
        const LossSum sum = differentiate_and_sum(loss, data, 3, 690, 1e6,
                                                  {same_gradient.data(), same_hessian.data()});
        const LossSum same = loss_sum(loss, data, 3, 690, 1e6);
        CHECK(gradient == same_gradient && hessian == same_hessian);
        CHECK(sum.units == same.units && sum.largest == same.largest);
      }
    }
  }
}

TEST(huge_scores_have_usable_derivatives) {
  const Loss log_loss{.kind = LossKind::log_loss};
  for (const double score : {-1e300, -1000.0, 1000.0, 1e300}) {
    for (const double target : {0.0, 0.4, 1.0}) {
      const Pair d = derivatives_at(log_loss, target, score);
      CHECK(d.gradient == static_cast<float>((score > 0 ? 1 : 0) - target));
      CHECK(d.hessian >= 0 && d.hessian < 1e-30F);
    }
  }
  // log(1 + exp(1000)) is 1000, although exp(1000) is infinite.
  CHECK(value_at(log_loss, 0, 1000) == 1000);
  CHECK(value_at(log_loss, 1, -1000) == 1000);
  for (const auto& losses : {smooth_losses, piecewise_linear_losses}) {
    for (const Loss& loss : losses) {
      for (const double score : {-500.0, 500.0}) {
        const Pair d = derivatives_at(loss, 1, score);
        CHECK(!std::isnan(d.gradient) && !std::isnan(d.hessian) && d.hessian >= 0);
        CHECK(!std::isnan(loss_sum(loss, {&score, nullptr, &score, 1}, 0, 1, 1).largest));
      }
    }
  }
}

TEST(each_target_and_each_level_has_its_own_loss) {
  const Sample sample(LossKind::squared_error);
  constexpr std::size_t n = 200;
  const LossData three{sample.targets.data(), sample.weights.data(), sample.scores.data(), n};
  const Loss targets{.kind = LossKind::squared_error, .n_scores = 3, .n_targets = 3};
  const Loss levels{.kind = LossKind::quantile, .n_scores = 3, .levels = {0.1, 0.5, 0.8}};
  for (const Loss& loss : {targets, levels}) {
    std::vector<float> gradient(3 * n), hessian(3 * n);
    differentiate(loss, three, 0, n, {gradient.data(), hessian.data()});
    double sum = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      const Loss one{.kind = loss.kind, .parameter = loss.levels.empty() ? 0 : loss.levels[k]};
      for (std::size_t i = 0; i < n; ++i) {
        const double target = sample.targets[loss.n_targets > 1 ? k * n + i : i];
        const double score = sample.scores[k * n + i];
        CHECK(gradient[k * n + i] == derivatives_at(one, target, score).gradient);
        sum += sample.weights[i] * closed_form(one, target, score);
      }
    }
    CHECK_NEAR(sum_of(loss, three, 0, n), sum, 1e-10 * sum);
  }
}

TEST(softmax_matches_probabilities) {
  constexpr std::size_t n = 1100;  // more than two blocks
  constexpr std::size_t n_classes = 4;
  const Loss loss{.kind = LossKind::softmax, .n_scores = n_classes};
  common::Stream stream(8, common::Purpose::rows, 0);
  std::vector<double> targets(n), weights(n), scores(n_classes * n);
  for (std::size_t i = 0; i < n; ++i) {
    targets[i] = static_cast<double>(stream.below(n_classes));
    weights[i] = stream.uniform();
  }
  for (double& score : scores) score = 6 * stream.uniform() - 3;
  const LossData data{targets.data(), weights.data(), scores.data(), n};
  std::vector<float> gradient(n_classes * n), hessian(n_classes * n);
  differentiate(loss, data, 0, n, {gradient.data(), hessian.data()});
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    double total = 0;
    for (std::size_t k = 0; k < n_classes; ++k) total += std::exp(scores[k * n + i]);
    for (std::size_t k = 0; k < n_classes; ++k) {
      const double p = std::exp(scores[k * n + i]) / total;
      const bool is_target = targets[i] == static_cast<double>(k);
      CHECK_NEAR(static_cast<double>(gradient[k * n + i]), p - (is_target ? 1 : 0), 1e-6);
      CHECK_NEAR(static_cast<double>(hessian[k * n + i]), p * (1 - p), 1e-6);
      if (is_target) sum -= weights[i] * std::log(p);
    }
  }
  CHECK_NEAR(sum_of(loss, data, 0, n), sum, 1e-9 * sum);
}

TEST(softmax_of_huge_scores_is_finite) {
  const Loss loss{.kind = LossKind::softmax, .n_scores = 3};
  const double target = 1;
  const std::array<double, 3> scores = {1e300, -1e300, 5};
  const LossData data{&target, nullptr, scores.data(), 1};
  std::array<float, 3> gradient{}, hessian{};
  differentiate(loss, data, 0, 1, {gradient.data(), hessian.data()});
  CHECK(gradient[0] == 1 && gradient[1] == -1 && gradient[2] == 0);
  for (const float h : hessian) CHECK(h >= 0 && h < 1e-30F);
  CHECK(loss_sum(loss, data, 0, 1, 1).largest == 2e300);
}

TEST(losses_without_a_formula_are_refused) {
  bool refused = false;
  try {
    value_at({.kind = LossKind::ranking}, 0, 0);
  } catch (const std::logic_error&) {
    refused = true;
  }
  CHECK(refused);
}

TEST(narrow_target_types_have_the_same_values) {
  const std::vector<std::uint8_t> small = {0, 1, 255, 7};
  const std::vector<float> narrow = {0.0F, 1.0F, 255.0F, 7.0F};
  const std::vector<double> wide = {0.0, 1.0, 255.0, 7.0};
  for (const LossTargets& targets :
       {LossTargets(small.data()), LossTargets(narrow.data()), LossTargets(wide.data())}) {
    double buffer[3] = {};
    const double* const found = targets.as_doubles(1, 4, buffer);
    for (std::size_t i = 0; i < 3; ++i) CHECK(found[i] == wide[i + 1] && targets[i] == wide[i]);
    CHECK((targets.wide() == nullptr) == (found == buffer));
  }
}
