// Losses of boosting: the loss of a raw score, its gradient and its second derivative. Where a loss
// has no useful second derivative (absolute, quantile, Huber) that is 1, and leaves are refitted to
// the residuals by line search (ESL, Algorithm 10.3).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "spinney/common/types.h"

namespace spinney {

enum class LossKind : std::uint8_t {
  squared_error,
  absolute_error,
  huber,
  quantile,
  poisson,  // the raw score is the logarithm of the mean, also of the next two
  gamma,
  tweedie,
  log_loss,     // two classes, or probabilities as targets: the raw score is the log-odds
  exponential,  // two classes: the raw score is half the log-odds
  softmax,      // several classes: one raw score each
  ranking,      // of rows in groups: see ranking.h
};

struct Loss {
  LossKind kind = LossKind::squared_error;
  double parameter = 0;      // level of the quantile, width of Huber's parabola, Tweedie's power
  std::size_t n_scores = 1;  // raw scores of a row: classes of softmax, levels of quantiles, else 1
  std::vector<double> levels = {};  // of several quantiles at once
  bool many_targets = false;        // each score has its own

  bool constant_hessian() const {
    return kind == LossKind::squared_error || kind == LossKind::absolute_error ||
           kind == LossKind::huber || kind == LossKind::quantile;
  }
  // Whether scores have nothing to do with each other.
  bool is_separate() const { return !levels.empty() || many_targets; }
  Loss of_score(std::size_t k) const {
    return {kind, levels.empty() ? parameter : levels[k], 1, {}, false};
  }
  bool refits_leaves() const {
    return kind == LossKind::absolute_error || kind == LossKind::huber ||
           kind == LossKind::quantile;
  }
};

// First and second derivatives of the rows' losses, [score][row], their weights left out. 32 bits
// are more than the histograms keep.
struct Derivatives {
  float* first = nullptr;
  float* second = nullptr;

  Derivatives from(std::size_t i) const { return {first + i, second + i}; }
};

// targets: [row], classes as numbers, or [score][row]; weights: [row] or null; scores:
// [score][row], of n_rows rows.
struct LossData {
  const double* targets = nullptr;
  const double* weights = nullptr;
  const double* scores = nullptr;
  std::size_t n_rows = 0;

  LossData of_score(std::size_t k, bool many_targets) const {
    return {targets + (many_targets ? k * n_rows : 0), weights, scores + k * n_rows, n_rows};
  }
};

// Derivatives of the rows [begin, end).
void differentiate(const Loss& loss, const LossData& data, std::size_t begin, std::size_t end,
                   const Derivatives& out);

// Weighted sum of the losses of the rows [begin, end).
double loss_sum(const Loss& loss, const LossData& data, std::size_t begin, std::size_t end);

// Both at once, which costs less.
double differentiate_and_sum(const Loss& loss, const LossData& data, std::size_t begin,
                             std::size_t end, const Derivatives& out);

// The step that lowers the loss of a leaf most, from the residuals (target - score) of its rows and
// their weights (or none). Reorders both.
double refit(const Loss& loss, std::span<double> residuals, std::span<double> weights);

}  // namespace spinney
