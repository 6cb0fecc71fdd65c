// The best cut of a column, from its weights by code and class.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "spinney/common/types.h"

namespace spinney::tree {

struct CodeCutTask {
  const std::int64_t* sums = nullptr;  // [code * n_classes + class]
  std::size_t n_codes = 0;
  std::size_t n_classes = 2;
  const std::int64_t* left = nullptr;    // by class: weight left of every cut; null: none
  const std::int64_t* totals = nullptr;  // by class: weight of the node
  double least = 0;                      // each side weighs more than this
  double min_weight = 0;                 // and at least this
  // The number of rows of each code. If not null, each side has at least min_rows of the node's
  // n_rows; n_left rows are left of every cut.
  const std::uint32_t* counts = nullptr;
  common::Row n_left = 0;
  common::Row n_rows = 0;
  common::Row min_rows = 1;
};

struct CodeCut {
  // Σ over both sides of (Σ of squared class weights) / weight = weight·(1 − Gini impurity).
  double score = -std::numeric_limits<double>::infinity();
  std::size_t code = 0;  // the last code that goes left; present in the node

  bool found() const { return score > -std::numeric_limits<double>::infinity(); }
};

// The first of equally good cuts.
CodeCut best_code_cut(const CodeCutTask& task, std::vector<double>& scratch);

}  // namespace spinney::tree
