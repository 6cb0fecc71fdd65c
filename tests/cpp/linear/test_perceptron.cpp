#include <cmath>
#include <vector>

#include "spinney/common/random.h"
#include "spinney/linear/perceptron.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::linear;

namespace {

// Integers have exact sums, so the order of summation does not matter.
struct PerceptronData {
  std::size_t n_rows = 60, n_features = 11;
  std::vector<double> x, steps;

  PerceptronData() {
    common::Stream stream(5, common::Purpose::rows, 1);
    for (std::size_t i = 0; i < n_rows; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < n_features; ++j) {
        x.push_back(static_cast<double>(stream.below(7)) - 3);
        sum += x.back();
      }
      steps.push_back(sum > 0 ? 1.0 : -1.0);
    }
  }

  PerceptronProblem problem() const {
    PerceptronProblem out;
    out.steps = steps.data();
    out.seed = 7;
    out.plane.coef.assign(n_features, 0.0);
    return out;
  }

  double product(std::size_t row, const Hyperplane& plane) const {
    double sum = plane.intercept;
    for (std::size_t j = 0; j < n_features; ++j) sum += x[row * n_features + j] * plane.coef[j];
    return sum * steps[row];
  }
};

}  // namespace

TEST(perceptron_matches_the_slow_loop) {
  const PerceptronData data;
  const PerceptronRows<double> rows{data.x.data(), nullptr, nullptr, data.n_rows, data.n_features};
  for (const auto variant : {PerceptronVariant::last, PerceptronVariant::average}) {
    PerceptronOptions options;
    options.variant = variant;
    options.shuffle = false;
    options.max_passes = 3;
    options.tolerance = -INFINITY;
    std::vector<PerceptronProblem> problems{data.problem()};
    common::Watch watch;
    run_perceptrons(rows, options, problems, 1, watch);

    Hyperplane plane{std::vector<double>(data.n_features, 0.0), 0.0};
    Hyperplane sum = plane;
    std::int64_t n_mistakes = 0, n_visited = 0;
    for (int pass = 0; pass < 3; ++pass) {
      for (std::size_t i = 0; i < data.n_rows; ++i, ++n_visited) {
        if (data.product(i, plane) <= 0) {
          ++n_mistakes;
          for (std::size_t j = 0; j < data.n_features; ++j) {
            plane.coef[j] += data.steps[i] * data.x[i * data.n_features + j];
          }
          plane.intercept += data.steps[i];
        }
        for (std::size_t j = 0; j < data.n_features; ++j) sum.coef[j] += plane.coef[j];
        sum.intercept += plane.intercept;
      }
    }
    const auto& result = problems[0].result;
    CHECK(problems[0].n_mistakes == n_mistakes);
    const bool average = variant == PerceptronVariant::average;
    for (std::size_t j = 0; j < data.n_features; ++j) {
      const double expected =
          average ? sum.coef[j] / static_cast<double>(n_visited) : plane.coef[j];
      CHECK(std::fabs(result.coef[j] - expected) < 1e-12);
    }
    const double expected =
        average ? sum.intercept / static_cast<double>(n_visited) : plane.intercept;
    CHECK(std::fabs(result.intercept - expected) < 1e-12);
  }
}

TEST(perceptron_pocket_keeps_the_best_hyperplane) {
  PerceptronData data;
  for (std::size_t i = 0; i < data.n_rows; i += 9) data.steps[i] = -data.steps[i];
  const PerceptronRows<double> rows{data.x.data(), nullptr, nullptr, data.n_rows, data.n_features};
  double errors[2];
  for (const bool pocket : {false, true}) {
    PerceptronOptions options;
    options.variant = pocket ? PerceptronVariant::pocket : PerceptronVariant::last;
    options.max_passes = 50;
    options.tolerance = -INFINITY;
    std::vector<PerceptronProblem> problems(3, data.problem());
    common::Watch watch;
    run_perceptrons(rows, options, problems, 2, watch);
    CHECK(problems[0].result.coef == problems[2].result.coef);
    errors[pocket] = 0;
    for (std::size_t i = 0; i < data.n_rows; ++i) {
      errors[pocket] += data.product(i, problems[0].result) <= 0;
    }
  }
  CHECK(errors[1] <= errors[0]);
  CHECK(errors[1] <= 10);
}
