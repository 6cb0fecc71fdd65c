// Exact Shapley values of a sum of trees (game_tree.h defines the terms). Trees are planned a few
// at a time, and blocks of rows are explained by the plans. Values are added to a row in the order
// of the trees, for any number of threads.
#pragma once

#include <vector>

#include "spinney/common/watch.h"
#include "spinney/explain/game_tree.h"
#include "spinney/explain/row_values.h"
#include "spinney/table/table.h"

namespace spinney::explain {

class TreeExplainer {
 public:
  // n_categories: of each feature, 0 for a numeric one.
  TreeExplainer(std::vector<std::int32_t> n_categories, std::size_t n_outputs);

  // Throws InputError if the arrays are inconsistent.
  void append(GameTree&& tree);

  // Unknown features have the values of these rows; without them, the trees' shares.
  void set_background(const table::Table& table);

  // out[output]: the expected prediction.
  void base_values(double* out) const;

  // Adds to out[row][feature][output] or, with interactions, to out[row][feature][feature][output]
  // above the diagonal alone.
  void explain(const table::Table& table, bool interactions, int n_threads, double* out,
               common::Watch& watch) const;

  std::size_t n_features() const { return n_categories_.size(); }
  std::size_t n_outputs() const { return n_outputs_; }

 private:
  void check_table(const table::Table& table) const;
  // As explain, with these rows of the background, or none.
  void explain_with(const RowValues* background, const table::Table& table, bool interactions,
                    int n_threads, double* out, common::Watch& watch) const;
  // As explain, without pairs or background; false if some path is too long for it.
  bool explain_few(const table::Table& table, int n_threads, double* out,
                   common::Watch& watch) const;

  std::vector<std::int32_t> n_categories_;
  std::size_t n_outputs_;
  std::vector<GameTree> trees_;
  std::vector<std::int32_t> slot_;  // of each feature among those of splits, or -1
  std::size_t n_slots_ = 0;
  RowValues background_;
};

}  // namespace spinney::explain
