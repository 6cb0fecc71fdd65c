// Losses of boosting: the loss of a raw score, its gradient and its second derivative (Hessian).
// Losses without a useful second derivative (absolute, quantile, Huber) have 1 instead, and leaf
// values are found by line search (line_search.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "spinney/common/fixed_point.h"
#include "spinney/common/types.h"

namespace spinney::loss {

enum class LossKind : std::uint8_t {
  squared_error,
  absolute_error,
  huber,
  quantile,
  poisson,  // poisson, gamma, tweedie: the raw score is the logarithm of the mean
  gamma,
  tweedie,
  log_loss,     // two classes, or probabilities as targets: the raw score is the log-odds
  exponential,  // two classes: the raw score is half the log-odds
  softmax,      // several classes: one raw score each
  ranking,      // rows in groups: see ranking.h
};

struct Loss {
  LossKind kind = LossKind::squared_error;
  double parameter = 0;             // quantile level, Huber's delta or Tweedie's power
  std::size_t n_scores = 1;         // raw scores of a row: one per class, level or target
  std::size_t n_targets = 1;        // columns of y; if more than 1, each score has its own
  std::vector<double> levels = {};  // quantile level of each score, if there are several

  bool constant_hessian() const {
    return kind == LossKind::squared_error || kind == LossKind::absolute_error ||
           kind == LossKind::huber || kind == LossKind::quantile;
  }
  // Whether the loss is a sum of one loss per score.
  bool is_separate() const { return !levels.empty() || n_targets > 1; }
  Loss of_score(std::size_t k) const {
    return {.kind = kind, .parameter = levels.empty() ? parameter : levels[k]};
  }
  bool uses_line_search() const {
    return kind == LossKind::absolute_error || kind == LossKind::huber ||
           kind == LossKind::quantile;
  }
};

constexpr std::size_t row_block = 16'384;  // rows that a thread processes at a time

// Derivatives of each row's loss, [score][row], before weighting. Histograms keep fewer than the
// 24 bits of a float.
struct Derivatives {
  float* gradient = nullptr;
  float* hessian = nullptr;
  // For one score only: the Hessians of each block of row_block rows follow its gradients, so that
  // the block can be packed into sums of 64 bits in place.
  bool in_blocks = false;

  // The derivatives from row i on; if in_blocks, i is the start of a block and only that block is
  // returned.
  Derivatives from(std::size_t i) const {
    if (in_blocks) return {gradient + 2 * i, gradient + 2 * i + row_block, false};
    return {gradient + i, hessian + i, false};
  }
};

// targets: [row] or [target][row], classes as numbers; weights: [row] or null; scores:
// [score][row].
struct LossData {
  const double* targets = nullptr;
  const double* weights = nullptr;
  const double* scores = nullptr;
  std::size_t n_rows = 0;

  LossData of_score(std::size_t k, const Loss& loss) const {
    return {targets + (loss.n_targets > 1 ? k * n_rows : 0), weights, scores + k * n_rows, n_rows};
  }
};

// Derivatives of rows [begin, end).
void differentiate(const Loss& loss, const LossData& data, std::size_t begin, std::size_t end,
                   const Derivatives& out);

// A sum in fixed point, independent of the order of its terms. It is correct if no term is larger
// than the bound that the units were chosen for; otherwise it may overflow, and `largest` shows it.
struct LossSum {
  std::int64_t units = 0;
  double largest = 0;  // absolute value of a term

  void add(const LossSum& more) {
    units = common::wrapping_sum(units, more.units);
    largest = std::max(largest, more.largest);
  }
};

// Weighted sum of the losses of rows [begin, end), over all scores. units: in 1.
LossSum loss_sum(const Loss& loss, const LossData& data, std::size_t begin, std::size_t end,
                 double units);

// Both in one pass, which is faster.
LossSum differentiate_and_sum(const Loss& loss, const LossData& data, std::size_t begin,
                              std::size_t end, double units, const Derivatives& out);

}  // namespace spinney::loss
