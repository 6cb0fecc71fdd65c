// Leaf values of losses without a useful second derivative, by line search over the residuals
// (target − score) of the leaf's rows (ESL, Algorithm 10.3).
#pragma once

#include <cstdint>
#include <span>

#include "spinney/loss/loss.h"

namespace spinney::loss {

// The smallest value such that at least `level` of the weight is at or below it. If exactly that
// much is, the mean of this value and the next, like the median of an even number of values.
// weights: integers, or empty for equal weights. Reorders the values.
double weighted_quantile(std::span<double> values, std::span<const std::int64_t> weights,
                         double level);

// The quantile of the residuals that starts the line search: the loss's own level, else the median.
double search_level(const Loss& loss);

// Huber's loss moves from the median by the mean of the clipped distances to it (Friedman 2001).
// Units in 1 of the sum of these distances, for n rows with weights up to `largest_weight`.
double huber_units_in_one(const Loss& loss, double largest_weight, std::uint64_t n);

// The sum itself, in fixed point. repeats: weights are numbers of repeated rows, so each distance
// is rounded before it is multiplied by its weight.
std::int64_t huber_sum(const Loss& loss, std::span<const double> residuals,
                       std::span<const std::int64_t> weights, bool repeats, double median,
                       double units);

}  // namespace spinney::loss
