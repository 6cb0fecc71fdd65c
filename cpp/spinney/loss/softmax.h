// Cross-entropy of the softmax of several raw scores; targets are class numbers.
#pragma once

#include "spinney/loss/loss.h"

namespace spinney::loss {

// The results of a pass over rows. derivatives: null if not needed; sums: whether to add up losses.
struct SoftmaxOutput {
  const Derivatives* derivatives = nullptr;
  bool sums = false;
  double units = 1;
};

// The sum of the losses of rows [begin, end), zero unless `sums`.
LossSum softmax(const LossData& data, std::size_t n_scores, std::size_t begin, std::size_t end,
                const SoftmaxOutput& out);

}  // namespace spinney::loss
