// Predictions of boosted trees: for single rows with little delay, and for many rows at once.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/forest/forest.h"

namespace spinney::serving {

// The function from a raw score to the prediction.
enum class Link : std::uint8_t {
  identity,
  exponential,
  probability,  // of the positive class or event
  logistic,     // probabilities of both classes
  twice_logistic,
  softmax,
};

// Predicts one row at a time. `out` has one number per score, or two (both classes) for the
// logistic links. The forest must outlive the scorer.
class RowScorer {
 public:
  RowScorer(const forest::Forest& forest, std::vector<double> baseline, std::size_t n_rounds,
            Link link);

  std::size_t n_features() const { return forest_.n_features(); }
  std::size_t n_out() const;
  void score(const double* row, double* out) const;

 private:
  void score_known(const double* row, double* out) const;

  const forest::Forest& forest_;
  std::vector<double> baseline_;
  std::size_t n_rounds_;
  Link link_;
  std::vector<std::size_t> categorical_;  // features
};

// out[row][score] += values of the trees of rounds [first, last). A round has n_scores trees, one
// per score; if leaves are vectors, it has one tree for all scores, and n_scores is 1.
void add_rounds(const forest::Forest& forest, const table::Table& table, std::size_t n_scores,
                std::size_t first, std::size_t last, int n_threads, double* out);

}  // namespace spinney::serving
