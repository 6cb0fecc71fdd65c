#include "spinney/loss/loss.h"

#include <stdexcept>

#include "spinney/common/dispatch.h"
#include "spinney/loss/formulas.h"
#include "spinney/loss/softmax.h"

namespace spinney::loss {

namespace {

template <class Formula>
SPINNEY_INLINE void fill_derivatives(const Formula& formula, const LossData& data,
                                     std::size_t begin, std::size_t end, const Derivatives& out) {
  const double* const __restrict targets = data.targets;
  const double* const __restrict scores = data.scores;
  float* const __restrict gradient = out.gradient;
  float* const __restrict hessian = out.hessian;
  for (std::size_t i = begin; i < end; ++i) {
    const GradientAndHessian d = formula.derivatives(targets[i], scores[i]);
    gradient[i] = static_cast<float>(d.gradient);
    hessian[i] = static_cast<float>(d.hessian);
  }
}

// The sum of the losses and, in the same pass, the derivatives if `differentiates`: both need the
// same exponentials, which the compiler then computes once.
template <class Formula, bool differentiates>
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
    if constexpr (differentiates) {
      float* const __restrict gradient = out.gradient + at;
      float* const __restrict hessian = out.hessian + at;
      for (std::size_t i = 0; i < n; ++i) {
        const GradientAndHessian d = formula.derivatives(targets[i], scores[i]);
        gradient[i] = static_cast<float>(d.gradient);
        hessian[i] = static_cast<float>(d.hessian);
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

// Calls body with the formula of a loss of one score.
template <class Body>
auto with_formula(const Loss& loss, const Body& body) {
  switch (loss.kind) {
    case LossKind::squared_error:
      return body(SquaredError{});
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
    case LossKind::softmax:
    case LossKind::ranking:
      break;
  }
  throw std::logic_error("loss: softmax and ranking losses have no formula of one score");
}

}  // namespace

void differentiate(const Loss& loss, const LossData& data, std::size_t begin, std::size_t end,
                   const Derivatives& out) {
  if (loss.kind == LossKind::softmax) {
    softmax(data, loss.n_scores, begin, end, {.derivatives = &out});
    return;
  }
  if (loss.is_separate()) {
    for (std::size_t k = 0; k < loss.n_scores; ++k) {
      differentiate(loss.of_score(k), data.of_score(k, loss), begin, end,
                    out.from(k * data.n_rows));
    }
  } else {
    with_formula(loss, [&]<class Formula>(const Formula& formula) {
      common::dispatch<fill_derivatives<Formula>>(formula, data, begin, end, out);
    });
  }
}

LossSum loss_sum(const Loss& loss, const LossData& data, std::size_t begin, std::size_t end,
                 double units) {
  if (loss.kind == LossKind::softmax) {
    return softmax(data, loss.n_scores, begin, end, {.sums = true, .units = units});
  }
  if (loss.is_separate()) {
    LossSum total;
    for (std::size_t k = 0; k < loss.n_scores; ++k) {
      total.add(loss_sum(loss.of_score(k), data.of_score(k, loss), begin, end, units));
    }
    return total;
  }
  return with_formula(loss, [&]<class Formula>(const Formula& formula) {
    return common::dispatch<sum_values<Formula, false>>(formula, data, begin, end, units, {});
  });
}

LossSum differentiate_and_sum(const Loss& loss, const LossData& data, std::size_t begin,
                              std::size_t end, double units, const Derivatives& out) {
  if (loss.kind == LossKind::softmax) {
    return softmax(data, loss.n_scores, begin, end,
                   {.derivatives = &out, .sums = true, .units = units});
  }
  if (loss.is_separate()) {
    LossSum total;
    for (std::size_t k = 0; k < loss.n_scores; ++k) {
      total.add(differentiate_and_sum(loss.of_score(k), data.of_score(k, loss), begin, end, units,
                                      out.from(k * data.n_rows)));
    }
    return total;
  }
  return with_formula(loss, [&]<class Formula>(const Formula& formula) {
    return common::dispatch<sum_values<Formula, true>>(formula, data, begin, end, units, out);
  });
}

}  // namespace spinney::loss
