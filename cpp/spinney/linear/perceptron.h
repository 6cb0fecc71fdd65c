// Rosenblatt's perceptron: rows are met one after the other, and each that is on the wrong side of
// the hyperplane (or on it) is added to the normal.
//
// A *pass* meets every row once. A *mistake* is a row that changed the hyperplane. The *pocket* has
// the hyperplane with the least weight of wrong rows among those that were counted: Gallant's
// ratchet counts one when it has met more rows in a row without a mistake than any before it, and
// here also at the end of each pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "spinney/common/watch.h"

namespace spinney::linear {

// Rows of a matrix, dense or (if `starts` is given) compressed. `Value` is float or double.
template <class Value>
struct PerceptronRows {
  const Value* values;
  const std::int32_t* columns;  // of the values of compressed rows
  const std::int32_t* starts;   // n_rows + 1
  std::size_t n_rows, n_features;
};

enum class PerceptronVariant { last, average, pocket };

struct PerceptronOptions {
  PerceptronVariant variant = PerceptronVariant::last;
  bool fit_intercept = true;
  bool shuffle = true;
  int max_passes = 1000;
  int patience = 5;         // passes without less loss by `tolerance`, after which the fit ends
  double tolerance = 1e-3;  // -inf: only a pass without mistakes ends it sooner
};

struct Hyperplane {
  std::vector<double> coef;
  double intercept = 0;
};

// One problem of two sides. `steps` is what a mistake adds of its row: sign (the side) times rate
// times weight; rows with a step of zero are never met. A wrong row counts by the size of its step.
struct PerceptronProblem {
  const double* steps;
  std::uint32_t seed;  // of the shuffles
  Hyperplane plane;    // in: where to start; out: where the passes ended
  Hyperplane answer;   // out: what the variant makes of it
  std::int64_t n_mistakes = 0;
  int n_passes = 0;
  bool overflow = false;
};

// Each problem is solved by one thread.
template <class Value>
void run_perceptrons(const PerceptronRows<Value>& rows, const PerceptronOptions& options,
                     std::vector<PerceptronProblem>& problems, int n_threads, common::Watch& watch);

extern template void run_perceptrons(const PerceptronRows<float>&, const PerceptronOptions&,
                                     std::vector<PerceptronProblem>&, int, common::Watch&);
extern template void run_perceptrons(const PerceptronRows<double>&, const PerceptronOptions&,
                                     std::vector<PerceptronProblem>&, int, common::Watch&);

}  // namespace spinney::linear
