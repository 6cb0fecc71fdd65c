// Gradient boosting: gradients of the loss at the scores so far, a tree fitted to them, a step.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "spinney/boosting/round_builder.h"
#include "spinney/ensemble/forest.h"
#include "spinney/loss/loss_targets.h"
#include "spinney/loss/ranking.h"

namespace spinney::boosting {

// Rows from `begin` on, up to the next stretch, have the numbers from `number` on.
struct RowStretch {
  std::size_t begin = 0;
  std::uint64_t number = 0;
};

struct BoostOptions {
  loss::Loss loss;
  TreeRules tree;
  double learning_rate = 0.1;
  std::size_t n_rounds = 100;
  std::size_t first_round = 0;  // how many there were before
  double subsample = 1;         // chance of each row to be drawn in a round
  // Rows are drawn with chances in proportion to their gradients, and count the more the smaller
  // their chance was (minimal variance sampling, Ibragimov and Gusev 2019).
  bool by_gradient = false;
  int n_threads = 1;
  loss::RankingRules ranking;
  std::vector<std::uint32_t> groups;  // of a ranking: where each begins, then the number of rows
  // Other workers with other rows of the same table, and how many rows come before each stretch of
  // this worker's own in the whole table. Null, empty: all rows are here.
  common::Exchange* exchange = nullptr;
  std::vector<RowStretch> stretches;
  // Called after each round with its number; the forest has its trees.
  std::function<void(std::size_t round)> after_round;
  // A loss of the caller's: derivatives from the scores. Null: `loss`.
  std::function<void(const double* scores, const loss::Derivatives& out)> own_gradients;
};

// Rows that are not learned from but watched.
struct Validation {
  const table::RowMatrix* matrix = nullptr;  // null: none
  std::vector<common::Row> rows;             // of the matrix
  loss::LossTargets targets;                 // [row of the matrix]
  const double* weights = nullptr;
  double* scores = nullptr;  // [score][row of the matrix], before the first round
  std::vector<std::uint32_t> groups;
};

struct BoostHistory {
  std::vector<double> train;  // mean loss after each round
  std::vector<double> validation;
};

// Appends trees to the forest, n_scores a round, or one where its leaves have a weight for each
// score. rows: those to learn from, ascending, null for all; scores: [score][row], before the first
// round, afterwards those of the last. No rounds: only the losses of the scores are found. Targets
// of rankings, and several of a row, are doubles.
void boost(const table::RowMatrix& matrix, const std::vector<common::Row>* rows,
           const loss::LossTargets& targets, const double* weights, double* scores,
           Validation& validation, const BoostOptions& options, ensemble::Forest& forest,
           BoostHistory& history, common::Watch& watch);

// One forest that gives the mean of what several of as many trees each give: round by round, their
// values divided.
void append_mean(const std::vector<const ensemble::Forest*>& forests, std::size_t n_rounds,
                 std::size_t n_scores, ensemble::Forest& out);

}  // namespace spinney::boosting
