// Losses of boosting: the loss of a raw score, its gradient and its second derivative. Where a loss
// has no useful second derivative (absolute, quantile, Huber) that is 1, and leaves are refitted to
// the residuals by line search (ESL, Algorithm 10.3).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "spinney/common/fixed_point.h"
#include "spinney/common/types.h"

namespace spinney::loss {

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

constexpr std::size_t row_block = 16'384;  // rows that are looked at together

// First and second derivatives of the rows' losses, [score][row], their weights left out. 32 bits
// are more than the histograms keep.
struct Derivatives {
  float* first = nullptr;
  float* second = nullptr;
  // Of one score, block by block: the second ones of row_block rows follow their first ones, so
  // that a block can become sums of 64 bits where it lies.
  bool in_blocks = false;

  // Those from i on; in blocks i begins one, and it ends there.
  Derivatives from(std::size_t i) const {
    if (in_blocks) return {first + 2 * i, first + 2 * i + row_block, false};
    return {first + i, second + i, false};
  }
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

// A sum in fixed point: the same for any order of rows. It is right if no term was larger than
// those that the units were made for.
struct LossSum {
  std::int64_t units = 0;
  double largest = 0;  // size of a term

  void add(const LossSum& more) {
    units = common::wrapping_sum(units, more.units);
    largest = std::max(largest, more.largest);
  }
};

// Weighted sum of the losses of the rows [begin, end); of several scores with losses of their own,
// of all of them. units: in 1.
LossSum loss_sum(const Loss& loss, const LossData& data, std::size_t begin, std::size_t end,
                 double units);

// Both at once, which costs less.
LossSum differentiate_and_sum(const Loss& loss, const LossData& data, std::size_t begin,
                              std::size_t end, double units, const Derivatives& out);

// The step that lowers the loss of a leaf most, from the residuals (target - score) of its rows and
// their weights (whole numbers of some unit, or none). Reorders the residuals.
double refit(const Loss& loss, std::span<double> residuals, std::span<const std::int64_t> weights);

// A part of it: where the median is known, the sum of what Huber's loss leaves of the distances to
// it, in fixed point, and the units in 1 for n rows with weights up to `heaviest`. repeats: each
// distance is rounded before it is multiplied by its weight, a number of repeated rows.
double units_of_huber(const Loss& loss, double heaviest, std::uint64_t n);
std::int64_t huber_units(const Loss& loss, std::span<const double> residuals,
                         std::span<const std::int64_t> weights, bool repeats, double median,
                         double units);

}  // namespace spinney::loss
