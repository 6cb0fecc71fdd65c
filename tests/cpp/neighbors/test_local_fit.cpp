#include <algorithm>
#include <cmath>
#include <vector>

#include "spinney/common/check.h"
#include "spinney/common/random.h"
#include "spinney/neighbors/least_norm.h"
#include "spinney/neighbors/local_fit.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::neighbors;

namespace {

// The neighbourhood of each query is a range of rows; distances are Euclidean.
struct LocalData {
  std::size_t n_features, n_outputs;
  std::vector<double> x, y, weights, queries, distances, bandwidths;
  std::vector<std::int64_t> starts{0}, rows, own;

  LocalData(std::size_t n, std::size_t d, std::size_t m, std::size_t n_queries, bool coarse)
      : n_features(d), n_outputs(m) {
    common::Stream stream(3, common::Purpose::rows, n * 31 + d);
    const auto number = [&] {
      return coarse ? static_cast<double>(stream.below(3)) : stream.uniform();
    };
    for (std::size_t i = 0; i < n * d; ++i) x.push_back(number());
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t hot = stream.below(m);
      for (std::size_t o = 0; o < m; ++o) y.push_back(o == hot ? 1.0 : 0.0);
    }
    for (std::size_t i = 0; i < n; ++i) weights.push_back(1 + stream.uniform());
    for (std::size_t q = 0; q < n_queries; ++q) {
      for (std::size_t f = 0; f < d; ++f) queries.push_back(number());
      const std::size_t first = stream.below(n), count = stream.below(n - first + 1);
      double farthest = 0;
      for (std::size_t i = first; i < first + count; ++i) {
        rows.push_back(static_cast<std::int64_t>(i));
        double square = 0;
        for (std::size_t f = 0; f < d; ++f) {
          square += std::pow(x[i * d + f] - queries[q * d + f], 2);
        }
        distances.push_back(std::sqrt(square));
        farthest = std::max(farthest, distances.back());
      }
      bandwidths.push_back(farthest * 1.001);
      starts.push_back(static_cast<std::int64_t>(rows.size()));
      own.push_back(static_cast<std::int64_t>(first));
    }
  }

  LocalModel model(int degree, SmoothingKernel kernel, double alpha, bool logit) const {
    return {x.data(),  y.data(), weights.data(), weights.size(), n_features,
            n_outputs, kernel,   degree,         alpha,          logit};
  }

  Neighborhoods near(bool leave_out) const {
    return {queries.data(),   bandwidths.size(), starts.data(), rows.data(), rows.size(),
            distances.data(), bandwidths.data(), nullptr,       own.data(),  leave_out};
  }
};

}  // namespace

TEST(local_fit_is_finite_for_any_shape) {
  for (const std::size_t d : {1, 2, 5}) {
    for (const bool coarse : {false, true}) {
      for (int degree = 0; degree <= 2; ++degree) {
        for (const double alpha : {0.0, 0.1}) {
          for (const bool logit : {false, true}) {
            const LocalData data(60, d, 3, 150, coarse);
            const LocalModel model = data.model(degree, SmoothingKernel::tricube, alpha, logit);
            const Neighborhoods near = data.near(coarse);
            const LocalFits one = fit_local(model, near, degree > 0 && !logit, 1);
            const LocalFits many = fit_local(model, near, degree > 0 && !logit, 3);
            for (std::size_t q = 0; q < near.n_queries; ++q) {
              const bool alone = std::isnan(one.noise[q]);
              CHECK(!alone || near.starts[q + 1] - near.starts[q] <= (coarse ? 1 : 0));
              for (std::size_t o = 0; o < 3; ++o) {
                const double value = one.values[q * 3 + o];
                CHECK(std::isfinite(value) || alone);
                CHECK(alone || value == many.values[q * 3 + o]);
              }
            }
            CHECK(std::all_of(one.gradients.begin(), one.gradients.end(),
                              [](double g) { return std::isfinite(g); }));
            CHECK(one.gradients == many.gradients);
          }
        }
      }
    }
  }
}

TEST(local_fit_rejects_invalid_neighborhoods) {
  LocalData data(10, 2, 1, 5, false);
  const LocalModel model = data.model(1, SmoothingKernel::gaussian, 0, false);
  const auto refused = [&] {
    try {
      fit_local(model, data.near(false), false, 1);
    } catch (const common::InputError&) {
      return true;
    }
    return false;
  };
  CHECK(!refused());
  const std::int64_t end = data.starts.back();
  data.starts.back() = end + 1;
  CHECK(refused());
  data.starts.back() = end;
  data.rows.back() = 10;
  CHECK(refused());
  data.rows.back() = -1;
  CHECK(refused());
}

TEST(least_norm_solution_is_a_projection) {
  // For two columns and their sum the minimum-norm solution of A'A v = A'b is known.
  std::vector<double> columns = {1, 2, 3, 4, 0, 1, 0, -1, 1, 3, 3, 3};
  const std::vector<double> a = columns;
  LeastNorm solver;
  solver.factor(columns.data(), 4, 3, 4, 1e-10);
  // (A'A)⁺ A'A is the projection onto the rows of A, to which (1, 1, −1) is at right angles.
  for (std::size_t c = 0; c < 3; ++c) {
    std::vector<double> column(3), out(3);
    for (std::size_t r = 0; r < 3; ++r) {
      for (std::size_t i = 0; i < 4; ++i) column[r] += a[r * 4 + i] * a[c * 4 + i];
    }
    solver.apply(column.data(), out.data());
    for (std::size_t r = 0; r < 3; ++r) {
      const double sign = (r == 2 ? -1.0 : 1.0) * (c == 2 ? -1.0 : 1.0);
      CHECK_NEAR(out[r], (r == c ? 1.0 : 0.0) - sign / 3, 1e-13);
    }
  }
}
