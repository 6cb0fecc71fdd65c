// The best cut of a column of which the weights have been added up by code and class.
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
  const std::int64_t* left = nullptr;    // by class: what lies left of every cut; null: nothing
  const std::int64_t* totals = nullptr;  // by class: of the node
  double least = 0;                      // a side weighs more than this,
  double min_weight = 0;                 // and not less than this
  // Null, or the rows of each code; then a side has min_rows of the node's n_rows at least, and
  // n_left lie left of every cut.
  const std::uint32_t* counts = nullptr;
  common::Row n_left = 0;
  common::Row n_rows = 0;
  common::Row min_rows = 1;
};

struct CodeCut {
  // Σ of squares over the weight, of both sides: what Gini impurity leaves of the node's weight.
  double score = -std::numeric_limits<double>::infinity();
  std::size_t code = 0;  // the last one that goes left, and a code that the node has

  bool found() const { return score > -std::numeric_limits<double>::infinity(); }
};

// Of equally good cuts the first.
CodeCut best_code_cut(const CodeCutTask& task, std::vector<double>& scratch);

}  // namespace spinney::tree
