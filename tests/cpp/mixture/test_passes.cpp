#include <cmath>
#include <vector>

#include "spinney/common/random.h"
#include "spinney/mixture/passes.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::mixture;

namespace {

struct MixtureData {
  std::size_t n, d, k;
  std::vector<double> x, weights, shift, means, factors, offsets;

  MixtureData(std::size_t n_, std::size_t d_, std::size_t k_, CovarianceType covariance_type)
      : n(n_), d(d_), k(k_) {
    common::Stream stream(5, common::Purpose::rows, n * 31 + d);
    const auto fill = [&](std::vector<double>& to, std::size_t size) {
      for (std::size_t i = 0; i < size; ++i) to.push_back(2 * stream.uniform() - 1);
    };
    fill(x, n * d);
    fill(shift, d);
    fill(means, k * d);
    fill(offsets, k);
    for (std::size_t i = 0; i < n; ++i) weights.push_back(stream.uniform());
    fill(factors, covariance_type == CovarianceType::full   ? k * d * d
                  : covariance_type == CovarianceType::tied ? d * d
                                                            : k * d);
  }

  Rows<double> rows() const {
    return {x.data(), n, d, static_cast<std::ptrdiff_t>(d), 1, shift.data(), weights.data()};
  }
  Model model(CovarianceType covariance_type) const {
    return {covariance_type, k, offsets.data(), means.data(), factors.data()};
  }

  double difference(std::size_t row, std::size_t c, std::size_t f) const {
    return x[row * d + f] - shift[f] - means[c * d + f];
  }

  // Reference for one row and one component.
  double log_joint(CovarianceType covariance_type, std::size_t row, std::size_t c) const {
    double norm = 0;
    for (std::size_t j = 0; j < d; ++j) {
      double sum = 0;
      if (covariance_type == CovarianceType::diag) {
        sum = difference(row, c, j) * factors[c * d + j];
      } else {
        const std::size_t first = covariance_type == CovarianceType::full ? c * d * d : 0;
        for (std::size_t i = 0; i <= j; ++i) {
          sum += difference(row, c, i) * factors[first + i * d + j];
        }
      }
      norm += sum * sum;
    }
    return offsets[c] - 0.5 * norm;
  }
};

bool close(double a, double b) { return std::abs(a - b) <= 1e-9 * (1 + std::abs(b)); }

}  // namespace

TEST(mixture_moments_match_the_reference) {
  for (const auto covariance_type :
       {CovarianceType::full, CovarianceType::tied, CovarianceType::diag}) {
    for (const std::size_t d : {1, 3, 4, 7, 8}) {
      for (const std::size_t n : {1, 255, 256, 4500}) {
        const std::size_t k = 3;
        const MixtureData data(n, d, k, covariance_type);
        std::vector<double> counts(k), sums(k * d), products(k * d * d);
        double likelihood = 0;
        for (std::size_t row = 0; row < n; ++row) {
          double total = 0;
          for (std::size_t c = 0; c < k; ++c)
            total += std::exp(data.log_joint(covariance_type, row, c));
          likelihood += data.weights[row] * std::log(total);
          for (std::size_t c = 0; c < k; ++c) {
            const double r =
                data.weights[row] * std::exp(data.log_joint(covariance_type, row, c)) / total;
            counts[c] += r;
            for (std::size_t a = 0; a < d; ++a) {
              sums[c * d + a] += r * data.difference(row, c, a);
              for (std::size_t b = 0; b < d; ++b) {
                products[(c * d + a) * d + b] +=
                    r * data.difference(row, c, a) * data.difference(row, c, b);
              }
            }
          }
        }
        common::Watch watch;
        const auto found = sum_moments(data.rows(), data.model(covariance_type), {}, 2, watch);
        const auto alone = sum_moments(data.rows(), data.model(covariance_type), {}, 1, watch);
        CHECK(found.products == alone.products && found.sums == alone.sums);
        CHECK(close(found.log_likelihood, likelihood));
        for (std::size_t c = 0; c < k; ++c) CHECK(close(found.counts[c], counts[c]));
        for (std::size_t i = 0; i < k * d; ++i) CHECK(close(found.sums[i], sums[i]));
        for (std::size_t a = 0; a < d; ++a) {
          for (std::size_t b = 0; b < d; ++b) {
            double all = 0, between = 0;
            for (std::size_t c = 0; c < k; ++c) {
              const double slow = products[(c * d + a) * d + b];
              all += slow;
              if (covariance_type == CovarianceType::full) {
                CHECK(close(found.products[(c * d + a) * d + b], slow));
              } else if (covariance_type == CovarianceType::diag && a == b) {
                CHECK(close(found.products[c * d + a], slow));
              }
              for (std::size_t e = 0; covariance_type == CovarianceType::tied && e < c; ++e) {
                between += found.overlaps[c * k + e] *
                           (data.means[c * d + a] - data.means[e * d + a]) *
                           (data.means[c * d + b] - data.means[e * d + b]);
              }
            }
            if (covariance_type == CovarianceType::tied)
              CHECK(close(found.products[a * d + b] + between, all));
          }
        }
      }
    }
  }
}

TEST(mixture_scores_match_the_formula_for_any_strides) {
  const std::size_t n = 300, d = 3, k = 2;
  const MixtureData data(n, d, k, CovarianceType::full);
  std::vector<float> columns(n * d);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t f = 0; f < d; ++f) columns[f * n + i] = static_cast<float>(data.x[i * d + f]);
  }
  common::Watch watch;
  std::vector<double> one(n), two(n), responsibilities(n * k);
  std::vector<std::int64_t> labels(n);
  Rows<double> rows = data.rows();
  rows.weights = nullptr;
  score_rows(rows, data.model(CovarianceType::full),
             {one.data(), responsibilities.data(), labels.data()}, 2, watch);
  const Rows<float> transposed{columns.data(),    n,      d, 1, static_cast<std::ptrdiff_t>(n),
                               data.shift.data(), nullptr};
  score_rows(transposed, data.model(CovarianceType::full), {two.data(), nullptr, nullptr}, 1,
             watch);
  for (std::size_t i = 0; i < n; ++i) {
    CHECK(std::abs(one[i] - two[i]) < 1e-4);
    double density = 0;
    for (std::size_t c = 0; c < k; ++c) {
      density += std::exp(data.log_joint(CovarianceType::full, i, c));
    }
    CHECK(close(one[i], std::log(density)));
    const double first = std::exp(data.log_joint(CovarianceType::full, i, 0)) / density;
    CHECK(close(responsibilities[i * k], first));
    CHECK(close(responsibilities[i * k] + responsibilities[i * k + 1], 1.0));
    CHECK(labels[i] == (responsibilities[i * k + 1] > responsibilities[i * k] ? 1 : 0));
  }
}

TEST(mixture_accepts_labels_or_responsibilities) {
  const std::size_t n = 700, d = 2, k = 2;
  const MixtureData data(n, d, k, CovarianceType::diag);
  std::vector<std::int32_t> labels(n);
  std::vector<double> responsibilities(n * k, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    labels[i] = static_cast<std::int32_t>(i % 3) - 1;  // a third has no component
    if (labels[i] >= 0) responsibilities[i * k + static_cast<std::size_t>(labels[i])] = 1.0;
  }
  common::Watch watch;
  const auto model = data.model(CovarianceType::diag);
  const auto by_label = sum_moments(data.rows(), model, {labels.data(), nullptr}, 1, watch);
  const auto by_matrix =
      sum_moments(data.rows(), model, {nullptr, responsibilities.data()}, 1, watch);
  CHECK(by_label.counts == by_matrix.counts && by_label.products == by_matrix.products);
  double weight = 0;
  for (std::size_t i = 1; i < n; i += 3) weight += data.weights[i];
  CHECK(close(by_label.counts[0], weight));
}
