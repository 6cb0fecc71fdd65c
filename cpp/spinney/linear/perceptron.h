// Rosenblatt's perceptron. It visits one row after the other. A row on the wrong side of the
// hyperplane, or on the hyperplane, is a mistake: it is added to the normal.
//
// A *pass* visits every row once. The *pocket* variant keeps the hyperplane with the smallest
// weight of misclassified rows among those that were evaluated. As in Gallant's algorithm with
// ratchet, a hyperplane is evaluated after its run of correct rows exceeds the longest run so far.
// It is also evaluated at the end of each pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "spinney/common/watch.h"

namespace spinney::linear {

// The rows of a matrix: dense, or CSR if `starts` is not null. `Value` is float or double.
template <class Value>
struct PerceptronRows {
  const Value* values;
  const std::int32_t* columns;  // of the values of CSR rows
  const std::int32_t* starts;   // n_rows + 1
  std::size_t n_rows, n_features;
};

enum class PerceptronVariant { last, average, pocket };

struct PerceptronOptions {
  PerceptronVariant variant = PerceptronVariant::last;
  bool fit_intercept = true;
  bool shuffle = true;
  int max_passes = 1000;
  int patience = 5;  // passes without an improvement of the loss by `tolerance` that end the fit
  double tolerance = 1e-3;  // -inf: only a pass without mistakes ends the fit early
};

struct Hyperplane {
  std::vector<double> coef;
  double intercept = 0;
};

// A binary problem. A mistake adds step × row to the normal, where step = class sign × learning
// rate × weight. Rows with a step of zero are skipped. The weight of a misclassified row is |step|.
struct PerceptronProblem {
  const double* steps;
  std::uint32_t seed;  // of the shuffled orders
  Hyperplane plane;    // in: start; out: after the last pass
  Hyperplane result;   // out: the hyperplane of the variant
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
