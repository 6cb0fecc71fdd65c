// Gradient boosting: each round fits trees to the derivatives of the loss at the present scores.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/boosting/boost_options.h"
#include "spinney/common/watch.h"
#include "spinney/forest/forest.h"
#include "spinney/loss/loss_targets.h"
#include "spinney/table/row_matrix.h"

namespace spinney::boosting {

// Validation rows: their scores are updated, and their loss is recorded after each round.
struct Validation {
  const table::RowMatrix* matrix = nullptr;  // null: no validation rows
  std::vector<common::Row> rows;             // of the matrix
  loss::LossTargets targets;                 // [row of the matrix]
  const double* weights = nullptr;
  double* scores = nullptr;  // [score][row of the matrix], before the first round
  std::vector<std::uint32_t> group_starts;
};

struct BoostHistory {
  std::vector<double> train;  // mean loss after each round
  std::vector<double> validation;
};

// Appends trees to the forest: n_scores per round, or one if its leaves have a weight per score.
// rows: training rows, ascending; null for all. scores: [score][row], updated in place. With
// n_rounds = 0, only the losses are computed. Rankings and several outputs need targets that are
// doubles.
void boost(const table::RowMatrix& matrix, const std::vector<common::Row>* rows,
           const loss::LossTargets& targets, const double* weights, double* scores,
           Validation& validation, const BoostOptions& options, forest::Forest& forest,
           BoostHistory& history, common::Watch& watch);

// Appends the mean of several forests of equal length: their trees, interleaved by round, with leaf
// values divided by the number of forests.
void append_mean(const std::vector<const forest::Forest*>& forests, std::size_t n_rounds,
                 std::size_t n_scores, forest::Forest& out);

}  // namespace spinney::boosting
