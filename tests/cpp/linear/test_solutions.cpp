// Linear models against closed forms, optimality conditions and naive loops.
#include <cmath>
#include <cstdint>
#include <vector>

#include "spinney/common/random.h"
#include "spinney/linear/coordinate_descent.h"
#include "spinney/linear/leave_one_out.h"
#include "spinney/linear/logistic.h"
#include "spinney/linear/row_products.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::linear;

namespace {

std::vector<double> draw(std::size_t n, std::uint64_t index) {
  common::Stream stream(6, common::Purpose::rows, index);
  std::vector<double> out(n);
  for (double& value : out) value = 2 * stream.uniform() - 1;
  return out;
}

// Solves a small symmetric positive definite system by elimination.
std::vector<double> solve(std::vector<double> a, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = a[i * n + k] / a[k * n + k];
      for (std::size_t j = k; j < n; ++j) a[i * n + j] -= factor * a[k * n + j];
      b[i] -= factor * b[k];
    }
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t j = i + 1; j < n; ++j) b[i] -= a[i * n + j] * b[j];
    b[i] /= a[i * n + i];
  }
  return b;
}

DenseRows<double> view(const std::vector<double>& x, std::size_t n, std::size_t d) {
  return {x.data(), static_cast<std::ptrdiff_t>(d), 1, n, d};
}

}  // namespace

TEST(logistic_newton_steps_reach_the_optimum) {
  const std::size_t n = 400, d = 3;
  const std::vector<double> x = draw(n * d, 1), noise = draw(n, 2), centre(d, 0.1);
  std::vector<double> targets(n), w(d + 1, 0.0);
  for (std::size_t i = 0; i < n; ++i) targets[i] = x[i * d] + noise[i] > 0.2 ? 1 : 0;
  Derivatives result;
  for (int step = 0; step < 12; ++step) {
    result =
        measure_binary(view(x, n, d), centre.data(), {targets.data(), nullptr, w.data()}, true, 2);
    const std::vector<double> change = solve(result.hessian, result.gradient);
    for (std::size_t j = 0; j <= d; ++j) w[j] -= change[j];
  }
  for (const double slope : result.gradient) CHECK_NEAR(slope, 0, 1e-9);
  // At the optimum the mean prediction is the mean of the targets, for each feature.
  for (std::size_t j = 0; j <= d; ++j) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      double z = w[d];
      for (std::size_t f = 0; f < d; ++f) z += w[f] * (x[i * d + f] - centre[f]);
      sum += (1 / (1 + std::exp(-z)) - targets[i]) * (j < d ? x[i * d + j] : 1.0);
    }
    CHECK_NEAR(sum, 0, 1e-8);
  }
}

TEST(logistic_intercept_has_a_closed_form) {
  const std::size_t n = 300;
  const std::vector<double> x(n, 0.0), centre(1, 0.0);
  std::vector<double> targets(n), weights(n), w(2, 0.0);
  double positive = 0, total = 0;
  for (std::size_t i = 0; i < n; ++i) {
    targets[i] = i % 4 == 0 ? 1 : 0;
    weights[i] = static_cast<double>(1 + i % 3);
    positive += targets[i] * weights[i];
    total += weights[i];
  }
  w[1] = std::log(positive / (total - positive));
  const Derivatives result = measure_binary(view(x, n, 1), centre.data(),
                                            {targets.data(), weights.data(), w.data()}, true, 1);
  const double p = positive / total;
  CHECK_NEAR(result.gradient[1], 0, 1e-10);
  CHECK_NEAR(result.loss, -total * (p * std::log(p) + (1 - p) * std::log(1 - p)), 1e-9);
  CHECK_NEAR(result.hessian[3], total * p * (1 - p), 1e-9);
}

TEST(logistic_passes_agree_on_dense_and_sparse_rows) {
  const std::size_t n = 300, d = 5, n_classes = 3;
  std::vector<double> x = draw(n * d, 3), values, weights = draw(n, 4);
  std::vector<std::int32_t> columns, starts{0}, labels(n);
  std::vector<double> targets(n);
  for (std::size_t i = 0; i < n; ++i) {
    labels[i] = static_cast<std::int32_t>(i % n_classes);
    targets[i] = i % 2 == 0 ? 1 : 0;
    weights[i] = std::abs(weights[i]);
    for (std::size_t j = 0; j < d; ++j) {
      if ((i + j) % 3 == 0) x[i * d + j] = 0;
      if (x[i * d + j] == 0) continue;
      values.push_back(x[i * d + j]);
      columns.push_back(static_cast<std::int32_t>(j));
    }
    starts.push_back(static_cast<std::int32_t>(values.size()));
  }
  const SparseRows<std::int32_t> sparse{values.data(), columns.data(), starts.data(), n, d};
  const std::vector<double> centre(d, 0.0), w = draw(n_classes * (d + 1), 5);
  const BinaryProblem binary{targets.data(), weights.data(), w.data()};
  const MultinomialProblem multinomial{labels.data(), weights.data(), w.data(), n_classes};
  const Derivatives a = measure_binary(view(x, n, d), centre.data(), binary, true, 1);
  const Derivatives b = measure_binary(sparse, binary, true, 2);
  CHECK_NEAR(a.loss, b.loss, 1e-10);
  for (std::size_t j = 0; j <= d; ++j) CHECK_NEAR(a.gradient[j], b.gradient[j], 1e-10);
  for (std::size_t j = 0; j < a.hessian.size(); ++j) CHECK_NEAR(a.hessian[j], b.hessian[j], 1e-10);
  const Derivatives c = measure_multinomial(view(x, n, d), centre.data(), multinomial, false, 1);
  const Derivatives e = measure_multinomial(sparse, multinomial, 2);
  CHECK_NEAR(c.loss, e.loss, 1e-10);
  for (std::size_t j = 0; j < c.gradient.size(); ++j) {
    CHECK_NEAR(c.gradient[j], e.gradient[j], 1e-10);
  }
}

TEST(coordinate_descent_solves_a_diagonal_problem) {
  // For a diagonal Hessian every coordinate is a soft threshold.
  const std::size_t d = 6;
  const std::vector<double> curves = {1, 2, 0.5, 4, 3, 0}, gradient = {3, -1, 0.2, -8, 0, 0};
  const std::vector<double> l1 = {1, 2, 0.1, 0, 1, 0}, l2 = {0, 1, 0.5, 0, 2, 0};
  std::vector<double> hessian(d * d, 0.0), w(d, 0.0);
  for (std::size_t j = 0; j < d; ++j) hessian[j * d + j] = curves[j];
  const Descent result = descend_by_matrix(hessian.data(), gradient.data(), d,
                                           {l1.data(), l2.data()}, 1e-14, 100, w.data());
  CHECK(result.n_sweeps <= 100);
  CHECK(result.violation <= 1e-14);
  for (std::size_t j = 0; j < d; ++j) {
    const double size = std::max(std::abs(gradient[j]) - l1[j], 0.0);
    const double expected = size == 0 ? 0 : (gradient[j] > 0 ? -size : size) / (curves[j] + l2[j]);
    CHECK_NEAR(w[j], expected, 1e-14);
  }
}

TEST(leave_one_out_matches_refits) {
  // Ridge regression on one centred feature, with an intercept that is not penalised.
  const std::size_t n = 11;
  const std::vector<double> x = draw(n, 7), y = draw(n, 8), alphas = {0.1, 2.0};
  std::vector<double> weights = draw(n, 9);
  double total = 0, mean_x = 0, mean_y = 0;
  for (std::size_t i = 0; i < n; ++i) {
    weights[i] = 0.5 + std::abs(weights[i]);
    total += weights[i];
    mean_x += weights[i] * x[i];
    mean_y += weights[i] * y[i];
  }
  mean_x /= total;
  mean_y /= total;
  double xx = 0, xy = 0;
  for (std::size_t i = 0; i < n; ++i) {
    xx += weights[i] * (x[i] - mean_x) * (x[i] - mean_x);
    xy += weights[i] * (x[i] - mean_x) * (y[i] - mean_y);
  }
  const double basis = 1;
  std::vector<double> shrinkage, coefficients;
  for (const double alpha : alphas) {
    shrinkage.push_back(1 / (xx + alpha));
    coefficients.push_back(xy / (xx + alpha));
  }
  const RidgePath path{&mean_x, &basis, 1,        shrinkage.data(), coefficients.data(),
                       &mean_y, 2,      1 / total};
  std::vector<double> predictions(2 * n);
  const std::vector<double> errors =
      leave_one_out(view(x, n, 1), {y.data(), 1, weights.data()}, path, 1, predictions.data());
  for (std::size_t a = 0; a < 2; ++a) {
    double sum = 0;
    for (std::size_t left_out = 0; left_out < n; ++left_out) {
      // Normal equations of (slope, intercept) without the row.
      std::vector<double> matrix(4, 0.0), right(2, 0.0);
      for (std::size_t i = 0; i < n; ++i) {
        if (i == left_out) continue;
        matrix[0] += weights[i] * x[i] * x[i];
        matrix[1] += weights[i] * x[i];
        matrix[3] += weights[i];
        right[0] += weights[i] * x[i] * y[i];
        right[1] += weights[i] * y[i];
      }
      matrix[0] += alphas[a];
      matrix[2] = matrix[1];
      const std::vector<double> fit = solve(matrix, right);
      const double prediction = fit[0] * x[left_out] + fit[1];
      CHECK_NEAR(predictions[left_out * 2 + a], prediction, 1e-12);
      const double error = y[left_out] - prediction;
      sum += weights[left_out] * error * error;
    }
    CHECK_NEAR(errors[a], sum, 1e-12);
  }
}

TEST(row_products_do_not_depend_on_the_layout) {
  for (const std::size_t d : {1, 7, 8, 19}) {
    for (const std::size_t n_outputs : {1, 3, 5}) {
      const std::size_t n = 21;
      const std::vector<double> drawn = draw(n * d, d), w = draw(n_outputs * d, 10);
      const std::vector<float> narrow(drawn.begin(), drawn.end());
      const std::vector<double> x(narrow.begin(), narrow.end());
      std::vector<double> columns_first(n * d);
      std::vector<std::int64_t> columns, starts{0};
      for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < d; ++j) {
          columns_first[j * n + i] = x[i * d + j];
          columns.push_back(static_cast<std::int64_t>(j));
        }
        starts.push_back(static_cast<std::int64_t>((i + 1) * d));
      }
      const Coefficients by{w.data(), n_outputs, nullptr};
      std::vector<double> rows(n * n_outputs), other(n * n_outputs);
      multiply_rows(view(x, n, d), by, 1, rows.data());
      for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t k = 0; k < n_outputs; ++k) {
          double sum = 0;
          for (std::size_t j = 0; j < d; ++j) sum += x[i * d + j] * w[k * d + j];
          CHECK_NEAR(rows[i * n_outputs + k], sum, 1e-13);
        }
      }
      const DenseRows<double> strided{columns_first.data(), 1, static_cast<std::ptrdiff_t>(n), n,
                                      d};
      multiply_rows(strided, by, 2, other.data());
      CHECK(rows == other);
      const DenseRows<float> floats{narrow.data(), static_cast<std::ptrdiff_t>(d), 1, n, d};
      multiply_rows(floats, by, 1, other.data());
      CHECK(rows == other);
      const SparseRows<std::int64_t> sparse{x.data(), columns.data(), starts.data(), n, d};
      multiply_rows(sparse, by, 1, other.data());
      CHECK(rows == other);
    }
  }
}
