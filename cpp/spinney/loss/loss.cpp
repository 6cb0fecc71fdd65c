#include "spinney/loss/loss.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "spinney/common/dispatch.h"
#include "spinney/common/exp.h"
#include "spinney/common/log.h"

namespace spinney::loss {

using common::exp;

namespace {

// Each formula: value(target, score) and derivatives(target, score) → {first, second}.
struct Pair {
  double first;
  double second;
};

struct SquaredError {
  static SPINNEY_INLINE double value(double y, double f) { return 0.5 * (f - y) * (f - y); }
  static SPINNEY_INLINE Pair derivatives(double y, double f) { return {f - y, 1.0}; }
};

struct AbsoluteError {
  static SPINNEY_INLINE double value(double y, double f) { return f > y ? f - y : y - f; }
  static SPINNEY_INLINE Pair derivatives(double y, double f) {
    return {(f > y ? 1.0 : 0.0) - (f < y ? 1.0 : 0.0), 1.0};
  }
};

struct Huber {
  double delta;
  SPINNEY_INLINE double value(double y, double f) const {
    const double away = f > y ? f - y : y - f;
    return away <= delta ? 0.5 * away * away : delta * (away - 0.5 * delta);
  }
  SPINNEY_INLINE Pair derivatives(double y, double f) const {
    const double away = f - y;
    const double low = away < -delta ? -delta : away;
    return {low > delta ? delta : low, 1.0};
  }
};

struct Quantile {
  double level;
  SPINNEY_INLINE double value(double y, double f) const {
    return f > y ? (1.0 - level) * (f - y) : level * (y - f);
  }
  SPINNEY_INLINE Pair derivatives(double y, double f) const {
    const double below = f > y ? 1.0 - level : 0.0;
    return {f < y ? -level : below, 1.0};
  }
};

struct Poisson {
  static SPINNEY_INLINE double value(double y, double f) { return exp(f) - y * f; }
  static SPINNEY_INLINE Pair derivatives(double y, double f) {
    const double mean = exp(f);
    return {mean - y, mean};
  }
};

struct Gamma {
  static SPINNEY_INLINE double value(double y, double f) { return f + y * exp(-f); }
  static SPINNEY_INLINE Pair derivatives(double y, double f) {
    const double ratio = y * exp(-f);
    return {1.0 - ratio, ratio};
  }
};

struct Tweedie {
  double power;
  SPINNEY_INLINE double value(double y, double f) const {
    return exp((2.0 - power) * f) / (2.0 - power) - y * exp((1.0 - power) * f) / (1.0 - power);
  }
  SPINNEY_INLINE Pair derivatives(double y, double f) const {
    const double a = y * exp((1.0 - power) * f);
    const double b = exp((2.0 - power) * f);
    return {b - a, (2.0 - power) * b - (1.0 - power) * a};
  }
};

// Of log(1 + exp(f)) − y·f; the target may be any probability.
struct LogLoss {
  static SPINNEY_INLINE double value(double y, double f) {
    const double e = exp(f > 0 ? -f : f);
    return (f > 0 ? f : 0.0) + common::log_normal(1.0 + e) - y * f;
  }
  static SPINNEY_INLINE Pair derivatives(double y, double f) {
    const double e = exp(f > 0 ? -f : f);
    const double r = 1.0 / (1.0 + e);
    const double small = e * r;  // the smaller of the two probabilities
    return {(f > 0 ? r : small) - y, small * r};
  }
};

// exp(−s·f) with s = 2y − 1.
struct Exponential {
  static SPINNEY_INLINE double value(double y, double f) { return exp((1.0 - 2.0 * y) * f); }
  static SPINNEY_INLINE Pair derivatives(double y, double f) {
    const double sign = 2.0 * y - 1.0;
    const double e = exp(-sign * f);
    return {-sign * e, e};
  }
};

template <class Formula>
SPINNEY_INLINE void fill_pairs(const Formula& formula, const LossData& data, std::size_t begin,
                               std::size_t end, const Derivatives& out) {
  const double* const __restrict targets = data.targets;
  const double* const __restrict scores = data.scores;
  float* const __restrict first = out.first;
  float* const __restrict second = out.second;
  for (std::size_t i = begin; i < end; ++i) {
    const Pair d = formula.derivatives(targets[i], scores[i]);
    first[i] = static_cast<float>(d.first);
    second[i] = static_cast<float>(d.second);
  }
}

// The sum of the losses, and on the way the derivatives, if they are wanted: what both need is
// computed once.
template <bool differentiates, class Formula>
SPINNEY_INLINE LossSum sum_values(const Formula& formula, const LossData& data, std::size_t begin,
                                  std::size_t end, double units, const Derivatives& out) {
  constexpr std::size_t block = 256;
  double values[block];
  std::int64_t sums[8] = {};
  double largest[8] = {};
  for (std::size_t at = begin; at < end; at += block) {
    const std::size_t n = end - at < block ? end - at : block;
    const double* const __restrict targets = data.targets + at;
    const double* const __restrict scores = data.scores + at;
    if (differentiates) {
      float* const __restrict first = out.first + at;
      float* const __restrict second = out.second + at;
      for (std::size_t i = 0; i < n; ++i) {
        const Pair d = formula.derivatives(targets[i], scores[i]);
        first[i] = static_cast<float>(d.first);
        second[i] = static_cast<float>(d.second);
        values[i] = formula.value(targets[i], scores[i]);
      }
    } else {
      for (std::size_t i = 0; i < n; ++i) values[i] = formula.value(targets[i], scores[i]);
    }
    if (data.weights != nullptr) {
      for (std::size_t i = 0; i < n; ++i) values[i] *= data.weights[at + i];
    }
    for (std::size_t i = n; i < block; ++i) values[i] = 0;
    for (std::size_t i = 0; i < block; i += 8) {
      for (std::size_t k = 0; k < 8; ++k) {
        const double value = values[i + k];
        const double size = value < 0 ? -value : value;
        largest[k] = size > largest[k] ? size : largest[k];
        sums[k] = common::wrapping_sum(sums[k], common::nearest(value * units));
      }
    }
  }
  LossSum total;
  for (std::size_t k = 0; k < 8; ++k) total.add({sums[k], largest[k]});
  return total;
}

// A loss of one score is a struct above, a line here and a case in with_formula. (These cannot be
// templates: only functions are compiled for every instruction set.)
#define SPINNEY_LOSS(FORMULA)                                                                 \
  SPINNEY_KERNEL void fill(const FORMULA& formula, const LossData& data, std::size_t begin,   \
                           std::size_t end, const Derivatives& out) {                         \
    fill_pairs(formula, data, begin, end, out);                                               \
  }                                                                                           \
  SPINNEY_KERNEL LossSum sum(const FORMULA& formula, const LossData& data, std::size_t begin, \
                             std::size_t end, double units) {                                 \
    return sum_values<false>(formula, data, begin, end, units, {});                           \
  }                                                                                           \
  SPINNEY_KERNEL LossSum fill_and_sum(const FORMULA& formula, const LossData& data,           \
                                      std::size_t begin, std::size_t end, double units,       \
                                      const Derivatives& out) {                               \
    return sum_values<true>(formula, data, begin, end, units, out);                           \
  }

SPINNEY_LOSS(SquaredError)
SPINNEY_LOSS(AbsoluteError)
SPINNEY_LOSS(Huber)
SPINNEY_LOSS(Quantile)
SPINNEY_LOSS(Poisson)
SPINNEY_LOSS(Gamma)
SPINNEY_LOSS(Tweedie)
SPINNEY_LOSS(LogLoss)
SPINNEY_LOSS(Exponential)
#undef SPINNEY_LOSS

// Softmax: a block of rows at a time, class by class, so that loops are over rows.
constexpr std::size_t softmax_block = 512;

struct SoftmaxBlock {
  explicit SoftmaxBlock(std::size_t n_scores) : exps(n_scores * softmax_block) {}

  double top[softmax_block];
  double total[softmax_block];
  std::vector<double> exps;  // of score - top, [score][row]
};

SPINNEY_KERNEL void softmax_totals(const LossData& data, std::size_t n_scores, std::size_t begin,
                                   std::size_t n, SoftmaxBlock& block) {
  for (std::size_t i = 0; i < n; ++i) block.top[i] = data.scores[begin + i];
  for (std::size_t k = 1; k < n_scores; ++k) {
    const double* const scores = data.scores + k * data.n_rows + begin;
    for (std::size_t i = 0; i < n; ++i) {
      block.top[i] = scores[i] > block.top[i] ? scores[i] : block.top[i];
    }
  }
  for (std::size_t i = 0; i < n; ++i) block.total[i] = 0;
  for (std::size_t k = 0; k < n_scores; ++k) {
    const double* const __restrict scores = data.scores + k * data.n_rows + begin;
    double* const __restrict exps = block.exps.data() + k * softmax_block;
    for (std::size_t i = 0; i < n; ++i) {
      exps[i] = exp(scores[i] - block.top[i]);
      block.total[i] += exps[i];
    }
  }
}

SPINNEY_KERNEL void softmax_pairs(const LossData& data, std::size_t k, std::size_t begin,
                                  std::size_t n, const SoftmaxBlock& block,
                                  const Derivatives& out) {
  const double* const exps = block.exps.data() + k * softmax_block;
  const double* const targets = data.targets + begin;
  const auto label = static_cast<double>(k);
  for (std::size_t i = 0; i < n; ++i) {
    const double p = exps[i] / block.total[i];
    out.first[i] = static_cast<float>(p - (targets[i] == label ? 1.0 : 0.0));
    out.second[i] = static_cast<float>(p * (1.0 - p));
  }
}

// The derivatives, if there is a place for them, and the sum of the losses, if it is wanted.
LossSum softmax(const LossData& data, std::size_t n_scores, std::size_t begin, std::size_t end,
                const Derivatives* out, bool sums, double units) {
  SoftmaxBlock block(n_scores);
  LossSum sum;
  for (std::size_t at = begin; at < end; at += softmax_block) {
    const std::size_t n = std::min(softmax_block, end - at);
    softmax_totals(data, n_scores, at, n, block);
    for (std::size_t k = 0; out != nullptr && k < n_scores; ++k) {
      softmax_pairs(data, k, at, n, block, out->from(k * data.n_rows + at));
    }
    for (std::size_t i = 0; sums && i < n; ++i) {
      const auto label = static_cast<std::size_t>(data.targets[at + i]);
      const double weight = data.weights == nullptr ? 1.0 : data.weights[at + i];
      const double own = data.scores[label * data.n_rows + at + i] - block.top[i];
      const double loss = weight * (common::log_normal(block.total[i]) - own);
      sum.add({common::nearest(loss * units), std::abs(loss)});
    }
  }
  return sum;
}

// The smallest value with at least `level` of the weight at or below it; between two such values,
// half-way, as the median of an even number is.
double weighted_quantile(std::span<double> values, std::span<const std::int64_t> weights,
                         double level) {
  const std::size_t n = values.size();
  if (weights.empty()) {
    const double place = level * static_cast<double>(n);
    auto k = static_cast<std::size_t>(std::ceil(place));
    const bool between = static_cast<double>(k) == place && k >= 1 && k < n;
    k = std::clamp<std::size_t>(k, 1, n) - 1;
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(k);
    std::nth_element(values.begin(), at, values.end());
    if (!between) return *at;
    return 0.5 * (*at + *std::min_element(at + 1, values.end()));
  }
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return values[a] < values[b] || (values[a] == values[b] && a < b);
  });
  std::int64_t total = 0;
  for (const std::int64_t weight : weights) total += weight;
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

// Calls body with the formula of a loss of one score.
template <class Body>
auto with_formula(const Loss& loss, const Body& body) {
  switch (loss.kind) {
    case LossKind::absolute_error:
      return body(AbsoluteError{});
    case LossKind::huber:
      return body(Huber{loss.parameter});
    case LossKind::quantile:
      return body(Quantile{loss.parameter});
    case LossKind::poisson:
      return body(Poisson{});
    case LossKind::gamma:
      return body(Gamma{});
    case LossKind::tweedie:
      return body(Tweedie{loss.parameter});
    case LossKind::log_loss:
      return body(LogLoss{});
    case LossKind::exponential:
      return body(Exponential{});
    default:
      return body(SquaredError{});
  }
}

}  // namespace

void differentiate(const Loss& loss, const LossData& data, std::size_t begin, std::size_t end,
                   const Derivatives& out) {
  if (loss.kind == LossKind::softmax) {
    softmax(data, loss.n_scores, begin, end, &out, false, 1);
    return;
  }
  if (loss.is_separate()) {
    for (std::size_t k = 0; k < loss.n_scores; ++k) {
      differentiate(loss.of_score(k), data.of_score(k, loss.many_targets), begin, end,
                    out.from(k * data.n_rows));
    }
  } else {
    with_formula(loss, [&](const auto& formula) { fill(formula, data, begin, end, out); });
  }
}

LossSum loss_sum(const Loss& loss, const LossData& data, std::size_t begin, std::size_t end,
                 double units) {
  if (loss.kind == LossKind::softmax) {
    return softmax(data, loss.n_scores, begin, end, nullptr, true, units);
  }
  if (loss.is_separate()) {
    LossSum total;
    for (std::size_t k = 0; k < loss.n_scores; ++k) {
      total.add(loss_sum(loss.of_score(k), data.of_score(k, loss.many_targets), begin, end, units));
    }
    return total;
  }
  return with_formula(loss,
                      [&](const auto& formula) { return sum(formula, data, begin, end, units); });
}

LossSum differentiate_and_sum(const Loss& loss, const LossData& data, std::size_t begin,
                              std::size_t end, double units, const Derivatives& out) {
  if (loss.kind == LossKind::softmax) {
    return softmax(data, loss.n_scores, begin, end, &out, true, units);
  }
  if (loss.is_separate()) {
    LossSum total;
    for (std::size_t k = 0; k < loss.n_scores; ++k) {
      total.add(differentiate_and_sum(loss.of_score(k), data.of_score(k, loss.many_targets), begin,
                                      end, units, out.from(k * data.n_rows)));
    }
    return total;
  }
  return with_formula(loss, [&](const auto& formula) {
    return fill_and_sum(formula, data, begin, end, units, out);
  });
}

double units_of_huber(const Loss& loss, double heaviest, std::uint64_t n) {
  return common::units_in_one(loss.parameter * heaviest, n);
}

std::int64_t huber_units(const Loss& loss, std::span<const double> residuals,
                         std::span<const std::int64_t> weights, bool repeats, double median,
                         double units) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < residuals.size(); ++i) {
    const std::int64_t weight = weights.empty() ? 1 : weights[i];
    const double left = std::clamp(residuals[i] - median, -loss.parameter, loss.parameter);
    sum += repeats ? weight * common::nearest(left * units)
                   : common::nearest(static_cast<double>(weight) * left * units);
  }
  return sum;
}

double refit(const Loss& loss, std::span<double> residuals, std::span<const std::int64_t> weights) {
  if (loss.kind == LossKind::quantile) {
    return weighted_quantile(residuals, weights, loss.parameter);
  }
  // Of Huber's loss the caller adds what is left of the distances to the median (Friedman 2001).
  return weighted_quantile(residuals, weights, 0.5);
}

}  // namespace spinney::loss
