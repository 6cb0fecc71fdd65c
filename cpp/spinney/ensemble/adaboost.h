// AdaBoost on trees: the weights of a round are larger for rows that earlier trees misclassify. The
// columns are coded once for all rounds.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/common/watch.h"
#include "spinney/ensemble/forest_grower.h"
#include "spinney/table/table.h"
#include "spinney/tree/grower.h"

namespace spinney::ensemble {

enum class AdaBoostKind : std::uint8_t {
  samme,  // votes; a tree must be better than a random class
  m1,     // votes; a tree must be right for more than half of the weight
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
  perfect,   // a tree had no error and is the last
  useless,   // a tree was not better than chance and was discarded
  overflow,  // weights reached infinity
};

struct AdaBoostHistory {
  std::vector<double> weights;  // of the trees
  std::vector<double> errors;   // of each tree, with its round's weights
  AdaBoostEnd end = AdaBoostEnd::complete;
};

// Appends trees to the forest. The targets are classes, one output. `weights` are the initial
// weights, which sum to one; the function replaces them by the final ones.
void adaboost(const table::Table& table, const criterion::Targets& targets,
              const AdaBoostOptions& options, double* weights, forest::Forest& forest,
              AdaBoostHistory& history, common::Watch& watch);

}  // namespace spinney::ensemble
