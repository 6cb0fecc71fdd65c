#include "spinney/loss/softmax.h"

#include <cmath>
#include <vector>

#include "spinney/common/dispatch.h"
#include "spinney/common/exp.h"
#include "spinney/common/log.h"

namespace spinney::loss {

namespace {

constexpr std::size_t block_rows = 512;

// Some rows at a time, one class after another, so that the inner loops run over rows.
struct Block {
  explicit Block(std::size_t n_scores) : exps(n_scores * block_rows) {}

  double largest[block_rows];  // score of each row
  double total[block_rows];    // sum of exp(score − largest) over the classes
  std::vector<double> exps;    // exp(score − largest), [score][row]
};

SPINNEY_INLINE void find_totals(const LossData& data, std::size_t n_scores, std::size_t begin,
                                std::size_t n, Block& block) {
  for (std::size_t i = 0; i < n; ++i) block.largest[i] = data.scores[begin + i];
  for (std::size_t k = 1; k < n_scores; ++k) {
    const double* const scores = data.scores + k * data.n_rows + begin;
    for (std::size_t i = 0; i < n; ++i) {
      block.largest[i] = scores[i] > block.largest[i] ? scores[i] : block.largest[i];
    }
  }
  for (std::size_t i = 0; i < n; ++i) block.total[i] = 0;
  for (std::size_t k = 0; k < n_scores; ++k) {
    const double* const __restrict scores = data.scores + k * data.n_rows + begin;
    double* const __restrict exps = block.exps.data() + k * block_rows;
    for (std::size_t i = 0; i < n; ++i) {
      exps[i] = common::exp(scores[i] - block.largest[i]);
      block.total[i] += exps[i];
    }
  }
}

// With p the probability of class k: gradient p − [target is k], Hessian p (1 − p).
SPINNEY_INLINE void differentiate_score(const LossData& data, std::size_t k, std::size_t begin,
                                        std::size_t n, const Block& block, const Derivatives& out) {
  const double* const exps = block.exps.data() + k * block_rows;
  const double* const targets = data.targets + begin;
  const auto label = static_cast<double>(k);
  for (std::size_t i = 0; i < n; ++i) {
    const double p = exps[i] / block.total[i];
    out.gradient[i] = static_cast<float>(p - (targets[i] == label ? 1.0 : 0.0));
    out.hessian[i] = static_cast<float>(p * (1.0 - p));
  }
}

void add_losses(const LossData& data, std::size_t begin, std::size_t n, const Block& block,
                double units, LossSum& sum) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto label = static_cast<std::size_t>(data.targets[begin + i]);
    const double weight = data.weights == nullptr ? 1.0 : data.weights[begin + i];
    const double score = data.scores[label * data.n_rows + begin + i] - block.largest[i];
    const double loss = weight * (common::log_normal(block.total[i]) - score);
    sum.add({common::nearest(loss * units), std::abs(loss)});
  }
}

}  // namespace

LossSum softmax(const LossData& data, std::size_t n_scores, std::size_t begin, std::size_t end,
                const SoftmaxOutput& out) {
  Block block(n_scores);
  LossSum sum;
  for (std::size_t at = begin; at < end; at += block_rows) {
    const std::size_t n = std::min(block_rows, end - at);
    common::dispatch<find_totals>(data, n_scores, at, n, block);
    for (std::size_t k = 0; out.derivatives != nullptr && k < n_scores; ++k) {
      common::dispatch<differentiate_score>(data, k, at, n, block,
                                            out.derivatives->from(k * data.n_rows + at));
    }
    if (out.sums) add_losses(data, at, n, block, out.units, sum);
  }
  return sum;
}

}  // namespace spinney::loss
