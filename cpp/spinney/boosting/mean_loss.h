// The mean loss of rows over all workers, in fixed point.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/boosting/boost_options.h"
#include "spinney/common/parallel.h"
#include "spinney/loss/loss_targets.h"

namespace spinney::boosting {

// Rows with their targets, weights and present scores: [row], scores [score][row].
struct ScoredRows {
  loss::LossTargets targets;
  const double* weights = nullptr;
  const double* scores = nullptr;
  std::size_t n_rows = 0;

  // Rows [begin, end), at most loss::row_block. buffer: room for their targets.
  loss::LossData block(std::size_t begin, std::size_t end, double* buffer) const {
    return {targets.as_doubles(begin, end, buffer), weights == nullptr ? nullptr : weights + begin,
            scores + begin, n_rows};
  }
  // All rows, if the targets are doubles.
  loss::LossData all() const { return {targets.wide(), weights, scores, n_rows}; }
};

// Rows whose mean loss is computed after each round, over all workers.
struct LossTotal {
  std::uint64_t n_rows = 0;
  double weight = 0;
  double bound = 0.75;  // expected bound of a row's loss; updated by each mean
};

// Calls body(block, begin, end) for blocks of loss::row_block rows, in parallel.
template <class Body>
void for_row_blocks(std::size_t n, double nanoseconds_per_row, int n_threads, const Body& body) {
  const int threads =
      common::worthwhile_threads(nanoseconds_per_row * static_cast<double>(n), n_threads, true);
  common::parallel_for(
      (n + loss::row_block - 1) / loss::row_block, threads, [&](std::size_t block, int) {
        body(block, block * loss::row_block, std::min(n, (block + 1) * loss::row_block));
      });
}

class MeanLoss {
 public:
  explicit MeanLoss(const BoostOptions& options) : options_(options) {}

  // The mean over the given rows, all if null. group_starts: of a ranking.
  double of_rows(const ScoredRows& data, const std::vector<common::Row>* rows,
                 const std::vector<std::uint32_t>& group_starts, LossTotal& total) const;
  // The mean over all rows, and their derivatives.
  double with_derivatives(const ScoredRows& data, const loss::Derivatives& out,
                          LossTotal& total) const;

 private:
  template <class Sum>
  loss::LossSum sum_blocks(std::size_t n, const Sum& sum) const;
  template <class Sum>
  double mean_of(LossTotal& total, const Sum& sum) const;
  loss::LossSum sum_all(const ScoredRows& data, double units) const;
  loss::LossSum sum_list(const ScoredRows& data, const std::vector<common::Row>& rows,
                         double units) const;
  double mean_rank_loss(const ScoredRows& data, const std::vector<common::Row>* rows,
                        const std::vector<std::uint32_t>& group_starts, LossTotal& total) const;

  const BoostOptions& options_;
};

}  // namespace spinney::boosting
