// Predictions of boosted trees: of one row with the least delay, and of many rows at once.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/forest/forest.h"

namespace spinney::serving {

// From a raw score to what is predicted.
enum class Link : std::uint8_t {
  identity,
  exponential,
  probability,  // of the one thing that is predicted
  logistic,     // both classes
  twice_logistic,
  softmax,
};

// One row at a time, with everything prepared: out has one number a score, or two for the logistic
// links (both classes). The forest must outlive it.
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

// out[row][score] += the values of the trees of the rounds [first, last), of which each has
// n_scores; where leaves have several weights, a tree has all scores and n_scores is 1.
void add_rounds(const forest::Forest& forest, const table::Table& table, std::size_t n_scores,
                std::size_t first, std::size_t last, int n_threads, double* out);

}  // namespace spinney::serving
