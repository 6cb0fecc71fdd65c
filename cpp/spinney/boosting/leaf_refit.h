// Leaf values by line search: quantiles of the residuals of a leaf's rows, over all workers. A
// single worker selects the quantile directly; several find its bits one byte after another, from
// sums of weights.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/boosting/histogram.h"
#include "spinney/loss/loss.h"

namespace spinney::boosting {

// Residuals (target − score) of a leaf's rows, and their integer weights; empty: all equal.
struct LeafResiduals {
  std::vector<double> residuals;
  std::vector<std::int64_t> weights;
};

// Returns the value of each leaf. largest_weight: of a row, in units of the weights. repeats:
// weights are numbers of repeated rows, and largest_weight is 1. Reorders the residuals.
std::vector<double> refit_leaves(const loss::Loss& loss, std::vector<LeafResiduals>& leaves,
                                 double largest_weight, bool repeats, const Workers& workers,
                                 int n_threads);

}  // namespace spinney::boosting
