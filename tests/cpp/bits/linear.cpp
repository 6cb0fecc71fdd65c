#include <limits>
#include <string>
#include <utility>

#include "bits.h"
#include "spinney/linear/coordinate_descent.h"
#include "spinney/linear/leave_one_out.h"
#include "spinney/linear/logistic.h"
#include "spinney/linear/moments.h"
#include "spinney/linear/perceptron.h"
#include "spinney/linear/row_products.h"

namespace bits {

using namespace spinney;
using namespace spinney::linear;

namespace {

struct Sparse {
  std::vector<double> values;
  std::vector<std::int64_t> columns, starts{0};

  explicit Sparse(const Data& data) {
    for (std::size_t i = 0; i < data.n_rows; ++i) {
      for (std::size_t f = 0; f < data.n_numbers; ++f) {
        const double value = data.x[i * data.n_numbers + f];
        if (value < 0.2) continue;
        values.push_back(value);
        columns.push_back(static_cast<std::int64_t>(f));
      }
      starts.push_back(static_cast<std::int64_t>(values.size()));
    }
  }
  SparseRows<std::int64_t> rows(std::size_t n_features) const {
    return {values.data(), columns.data(), starts.data(), starts.size() - 1, n_features};
  }
};

void add_derivatives(Hash& hash, const Derivatives& derivatives) {
  hash.add(derivatives.loss);
  hash.add(derivatives.gradient);
  hash.add(derivatives.hessian);
}

void print_passes() {
  const Data& data = train_complete();
  const std::size_t d = data.n_numbers;
  const DenseRows<double> rows{data.x.data(), static_cast<std::ptrdiff_t>(d), 1, data.n_rows, d};
  const DenseRows<float> narrow{data.narrow.data(), static_cast<std::ptrdiff_t>(d), 1, data.n_rows,
                                d};
  const Sparse sparse(data);
  const std::vector<double> centre(d + 1, 0.125), coefficients(d + 1, 0.3);
  const WeightedTargets targets{data.y.data(), 1, data.fractions.data()};
  print("linear moments", [&](Hash& hash) {
    hash.add(sum_moments(rows, targets, centre.data(), n_threads));
    hash.add(sum_moments(narrow, targets, centre.data(), n_threads));
    hash.add(sum_moments(sparse.rows(d), targets, n_threads));
  });
  print("linear logistic", [&](Hash& hash) {
    const BinaryProblem problem{data.sides.data(), data.fractions.data(), coefficients.data()};
    add_derivatives(hash, measure_binary(rows, centre.data(), problem, true, n_threads));
    add_derivatives(hash, measure_binary(narrow, centre.data(), problem, false, n_threads));
    add_derivatives(hash, measure_binary(sparse.rows(d), problem, true, n_threads));
  });
  print("linear multinomial", [&](Hash& hash) {
    const std::vector<std::int32_t> labels(data.labels.begin(), data.labels.end());
    std::vector<double> by_class(3 * (d + 1));
    for (std::size_t i = 0; i < by_class.size(); ++i) {
      by_class[i] = 0.1 * static_cast<double>(i % 5) - 0.2;
    }
    const MultinomialProblem problem{labels.data(), data.fractions.data(), by_class.data(), 3};
    add_derivatives(hash, measure_multinomial(rows, centre.data(), problem, true, n_threads));
    add_derivatives(hash, measure_multinomial(sparse.rows(d), problem, n_threads));
  });
  print("linear products", [&](Hash& hash) {
    std::vector<double> out(data.n_rows);
    const Coefficients by{coefficients.data(), 1, centre.data()};
    multiply_rows(rows, by, n_threads, out.data());
    hash.add(out);
    multiply_rows(narrow, by, n_threads, out.data());
    hash.add(out);
    multiply_rows(sparse.rows(d), {coefficients.data(), 1, nullptr}, n_threads, out.data());
    hash.add(out);
  });
  print("linear leave one out", [&](Hash& hash) {
    std::vector<double> basis(d * d), shrinkage(2 * d), weights(2 * d),
        predictions(2 * data.n_rows);
    for (std::size_t i = 0; i < d; ++i) {
      basis[i * d + i] = 1;
      shrinkage[i] = 1e-3;
      shrinkage[d + i] = 1e-4;
      weights[i] = 0.5;
      weights[d + i] = 0.7;
    }
    const double intercept = 0.2;
    const RidgePath path{centre.data(),  basis.data(), d, shrinkage.data(),
                         weights.data(), &intercept,   2, 1.0 / 700};
    hash.add(leave_one_out(rows, targets, path, n_threads, predictions.data()));
    hash.add(predictions);
  });
  print("linear coordinate descent", [&](Hash& hash) {
    const std::size_t width = d + 2;
    const std::vector<double> moments = sum_moments(rows, targets, centre.data(), n_threads);
    std::vector<double> hessian, gradient, w(d, 0.0);
    for (std::size_t a = 0; a < d; ++a) {
      gradient.push_back(-moments[a * width + d]);
      for (std::size_t b = 0; b < d; ++b) hessian.push_back(moments[a * width + b]);
    }
    const std::vector<double> absolute(d, 60.0), square(d, 1.0);
    const Descent result =
        descend_by_matrix(hessian.data(), gradient.data(), d, {absolute.data(), square.data()},
                          1e-10, 1000, w.data());
    hash.add(result.n_sweeps);
    hash.add(result.violation);
    hash.add(w);
  });
}

void print_perceptrons() {
  const Data& data = train_complete();
  std::vector<double> steps;
  for (std::size_t i = 0; i < data.n_rows; ++i) {
    steps.push_back((2 * data.sides[i] - 1) * data.fractions[i]);
  }
  for (const auto& [name, variant] : {std::pair{"last", PerceptronVariant::last},
                                      std::pair{"average", PerceptronVariant::average},
                                      std::pair{"pocket", PerceptronVariant::pocket}}) {
    print(std::string("linear perceptron ") + name, [&](Hash& hash) {
      const PerceptronRows<double> rows{data.x.data(), nullptr, nullptr, data.n_rows,
                                        data.n_numbers};
      PerceptronOptions options;
      options.variant = variant;
      options.max_passes = 12;
      options.tolerance = -std::numeric_limits<double>::infinity();
      std::vector<PerceptronProblem> problems(1);
      problems[0].steps = steps.data();
      problems[0].seed = 3;
      problems[0].plane.coef.assign(data.n_numbers, 0.0);
      common::Watch watch;
      run_perceptrons(rows, options, problems, n_threads, watch);
      hash.add(problems[0].plane.coef);
      hash.add(problems[0].result.coef);
      hash.add(problems[0].result.intercept);
      hash.add(problems[0].n_mistakes);
    });
  }
}

}  // namespace

void print_linear() {
  print_passes();
  print_perceptrons();
}

}  // namespace bits
