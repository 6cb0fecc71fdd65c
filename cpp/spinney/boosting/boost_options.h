// Options of a booster. Fields have the names of the Python parameters.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "spinney/boosting/split_rules.h"
#include "spinney/common/exchange.h"
#include "spinney/loss/loss.h"
#include "spinney/loss/ranking.h"

namespace spinney::boosting {

enum class Growth : std::uint8_t {
  best_first,  // split the leaf with the largest gain next
  level_wise,  // split all leaves of a level before those of the next
  oblivious,   // use one split for all leaves of a level
};

enum class Sampling : std::uint8_t {
  uniform,
  // Probabilities in proportion to the gradients; a row counts more the smaller its probability
  // was (minimal variance sampling, Ibragimov and Gusev 2019).
  gradient,
};

constexpr std::size_t unlimited = std::numeric_limits<std::int32_t>::max();

struct TreeRules {
  SplitRules split;
  Growth growth = Growth::best_first;
  std::size_t max_leaf_nodes = 31;
  std::size_t max_depth = unlimited;
  // Fractions of the columns drawn for a tree, a level and a node, each from the one before.
  double max_features_tree = 1;
  double max_features_level = 1;
  double max_features = 1;
  // Sets of columns that may appear together on a path; empty: any.
  std::vector<std::vector<std::uint32_t>> interaction_cst;
  std::uint64_t seed = 0;
};

// Rows from `begin` to the next range have the numbers from `number` on in the whole table.
struct RowRange {
  std::size_t begin = 0;
  std::uint64_t number = 0;
};

struct BoostOptions {
  loss::Loss loss;
  loss::RankingRules ranking;
  std::vector<std::uint32_t> group_starts;  // ranking: first row of each group, then n_rows
  TreeRules tree;
  double learning_rate = 0.1;
  double subsample = 1;  // fraction of the rows drawn in each round
  Sampling sampling = Sampling::uniform;
  std::size_t first_round = 0;  // rounds that exist already
  std::size_t n_rounds = 100;   // rounds to add
  int n_threads = 1;
  // The other workers, each with some rows of the table, and the numbers of this worker's rows in
  // the table. Null and empty: this process has all rows.
  common::Exchange* exchange = nullptr;
  std::vector<RowRange> row_ranges;
  // Called after each round with its number, when the forest has its trees.
  std::function<void(std::size_t round)> after_round;
  // A user-defined loss: computes derivatives from scores. Null: `loss`.
  std::function<void(const double* scores, const loss::Derivatives& out)> custom_derivatives;
};

// Throws InputError if an option is out of its range, or refers to a column that does not exist.
void check_options(const BoostOptions& options);
void check_columns(const TreeRules& rules, std::size_t n_features);

}  // namespace spinney::boosting
