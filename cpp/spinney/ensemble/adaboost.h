// AdaBoost on trees: each tree is grown with weights that stress what the ones before it got wrong.
// The columns are coded once, for all rounds.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/common/watch.h"
#include "spinney/ensemble/forest_grower.h"
#include "spinney/table/table.h"
#include "spinney/tree/grower.h"

namespace spinney::ensemble {

enum class AdaBoostKind : std::uint8_t {
  samme,  // votes; a tree must beat guessing one of the classes
  m1,     // votes; a tree must be right with more than half of the weight
  real,   // logarithms of class probabilities
};

struct AdaBoostOptions {
  tree::GrowOptions tree;  // the weights sum to one; the seed comes from `seeds`
  AdaBoostKind kind = AdaBoostKind::samme;
  std::size_t n_rounds = 50;
  double learning_rate = 1;
  const std::uint64_t* seeds = nullptr;  // of each round
};

enum class AdaBoostEnd : std::uint8_t {
  complete,  // all rounds
  perfect,   // a tree made no mistake: it is the last
  useless,   // a tree was no better than chance: it was not taken
  overflow,  // weights reached infinity
};

struct AdaBoostHistory {
  std::vector<double> weights;  // of the trees
  std::vector<double> errors;   // of each tree under the weights that it was grown with
  AdaBoostEnd end = AdaBoostEnd::complete;
};

// Appends trees to the forest. targets has one output of classes; its weights are where the rounds
// start from, they sum to one, and hold the last ones afterwards.
void adaboost(const table::Table& table, const criterion::Targets& targets,
              const AdaBoostOptions& options, double* weights, forest::Forest& forest,
              AdaBoostHistory& history, common::Watch& watch);

}  // namespace spinney::ensemble
