// Steps of leaves by line search: medians and other quantiles of residuals, over the rows of all
// workers. One worker parts its rows; several find the bits of a quantile one byte after another,
// from numbers of rows alone.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/boosting/histogram.h"
#include "spinney/loss/loss.h"

namespace spinney::boosting {

// Residuals (target - score) of a leaf's rows, and their weights in some unit, or none.
struct LeafResiduals {
  std::vector<double> residuals;
  std::vector<std::int64_t> weights;
};

// heaviest: weight of a row, in units. repeats: weights are numbers of repeated rows, and
// `heaviest` is 1, the weight of one of these. Reorders the residuals.
std::vector<double> refit_leaves(const loss::Loss& loss, std::vector<LeafResiduals>& leaves,
                                 double heaviest, bool repeats, const Workers& workers,
                                 int n_threads);

}  // namespace spinney::boosting
