#include <cmath>
#include <vector>

#include "spinney/linear/block_kernels.h"
#include "spinney/linear/coordinate_descent.h"
#include "spinney/linear/leave_one_out.h"
#include "spinney/linear/logistic.h"
#include "spinney/linear/moments.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::linear;

namespace {

// Reproducible numbers without a pattern.
std::vector<double> numbers(std::size_t n, double seed) {
  std::vector<double> out(n);
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = std::sin(12.9898 * static_cast<double>(i + 1) + 78.233 * seed);
  }
  return out;
}

bool close(double a, double b) { return std::abs(a - b) <= 1e-10 * (1 + std::abs(b)); }

struct Problem {
  std::size_t n, d;
  std::vector<double> x, weights, centre;

  Problem(std::size_t n_, std::size_t d_)
      : n(n_), d(d_), x(numbers(n * d, 1)), weights(numbers(n, 2)), centre(numbers(d + 1, 3)) {
    for (double& weight : weights) weight = weight * weight;
  }
  double at(std::size_t i, std::size_t j) const { return j < d ? x[i * d + j] - centre[j] : 1; }
  DenseRows<double> rows() const { return {x.data(), static_cast<std::ptrdiff_t>(d), 1, n, d}; }
};

}  // namespace

TEST(moments_are_sums_of_products) {
  for (const auto& [n, d] : {std::pair<std::size_t, std::size_t>{1, 1}, {300, 5}, {700, 90}}) {
    const Problem p(n, d);
    const std::vector<double> y = numbers(n, 4);
    const auto one = sum_moments(p.rows(), {y.data(), 1, p.weights.data()}, p.centre.data(), 1);
    const auto three = sum_moments(p.rows(), {y.data(), 1, p.weights.data()}, p.centre.data(), 3);
    CHECK(one == three);
    const std::size_t width = d + 2;
    const auto value = [&](std::size_t i, std::size_t j) {
      if (j < d) return p.at(i, j);
      return j == d ? y[i] - p.centre[d] : 1.0;
    };
    for (const std::size_t a : {std::size_t{0}, d / 2, d, d + 1}) {
      for (const std::size_t b : {std::size_t{0}, d, d + 1}) {
        double sum = 0;
        for (std::size_t i = 0; i < n; ++i) sum += p.weights[i] * value(i, a) * value(i, b);
        CHECK(close(one[a * width + b], sum));
      }
    }
  }
}

TEST(logistic_derivatives_match_the_formula) {
  for (const auto& [n, d] : {std::pair<std::size_t, std::size_t>{3, 2}, {600, 7}, {40, 600}}) {
    const Problem p(n, d);
    std::vector<double> targets(n), w = numbers(d + 1, 5);
    for (std::size_t i = 0; i < n; ++i) targets[i] = i % 3 == 0 ? 1 : 0;
    for (double& value : w) value /= static_cast<double>(d);
    const BinaryProblem problem{targets.data(), p.weights.data(), w.data()};
    const Derivatives actual = measure_binary(p.rows(), p.centre.data(), problem, true, 2);
    const Derivatives first = measure_binary(p.rows(), p.centre.data(), problem, false, 1);
    double loss = 0;
    std::vector<double> gradient(d + 1), line(d + 1);
    for (std::size_t i = 0; i < n; ++i) {
      double z = 0;
      for (std::size_t j = 0; j <= d; ++j) z += p.at(i, j) * w[j];
      const double share = 1 / (1 + std::exp(-z));
      loss +=
          p.weights[i] * (std::log1p(std::exp(-std::abs(z))) + std::max(z, 0.0) - targets[i] * z);
      for (std::size_t j = 0; j <= d; ++j) {
        gradient[j] += p.weights[i] * (share - targets[i]) * p.at(i, j);
        line[j] += p.weights[i] * share * (1 - share) * p.at(i, j) * p.at(i, d / 2);
      }
    }
    CHECK(close(actual.loss, loss));
    CHECK(close(first.loss, loss));
    for (std::size_t j = 0; j <= d; ++j) {
      CHECK(close(actual.gradient[j], gradient[j]));
      CHECK(close(first.gradient[j], gradient[j]));
      CHECK(close(actual.hessian[(d / 2) * (d + 1) + j], line[j]));
    }
  }
}

TEST(softmax_of_two_classes_equals_logistic) {
  const Problem p(400, 4);
  std::vector<double> targets(p.n), w = numbers(5, 6), both(10, 0.0);
  std::vector<std::int32_t> labels(p.n);
  for (std::size_t i = 0; i < p.n; ++i) targets[i] = labels[i] = i % 2 == 0 ? 1 : 0;
  for (std::size_t j = 0; j < 5; ++j) both[5 + j] = w[j];
  const Derivatives two =
      measure_binary(p.rows(), p.centre.data(), {targets.data(), nullptr, w.data()}, true, 1);
  const Derivatives soft = measure_multinomial(p.rows(), p.centre.data(),
                                               {labels.data(), nullptr, both.data(), 2}, true, 2);
  CHECK(close(two.loss, soft.loss));
  for (std::size_t j = 0; j < 5; ++j) {
    CHECK(close(two.gradient[j], soft.gradient[5 + j]));
    CHECK(close(two.gradient[j], -soft.gradient[j]));
    CHECK(close(two.hessian[j], soft.hessian[5 * 10 + 5 + j]));
    CHECK(close(two.hessian[j], -soft.hessian[5 + j]));
  }
}

TEST(coordinate_descent_reaches_the_optimum) {
  const std::size_t n = 50, d = 6;
  const Problem p(n, d);
  std::vector<double> hessian(d * d, 0.0), slopes = numbers(n, 7);
  std::vector<double> gradient(d, 0.0), absolute(d, 1.5), square(d, 0.1);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t a = 0; a < d; ++a) {
      gradient[a] += slopes[i] * p.x[i * d + a];
      for (std::size_t b = 0; b < d; ++b) {
        hessian[a * d + b] += p.weights[i] * p.x[i * d + a] * p.x[i * d + b];
      }
    }
  }
  std::vector<double> w(d, 0.0);
  const Penalty penalty{absolute.data(), square.data()};
  const Descent result =
      descend_by_matrix(hessian.data(), gradient.data(), d, penalty, 1e-12, 10000, w.data());
  CHECK(result.violation <= 1e-12);
  for (std::size_t a = 0; a < d; ++a) {
    double slope = gradient[a] + square[a] * w[a];
    for (std::size_t b = 0; b < d; ++b) slope += hessian[a * d + b] * w[b];
    if (w[a] == 0) {
      CHECK(std::abs(slope) <= absolute[a] + 1e-9);
    } else {
      CHECK(std::abs(slope + (w[a] > 0 ? absolute[a] : -absolute[a])) < 1e-9);
    }
  }
}
