// Exact indexes against a naive search over all rows.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "spinney/common/random.h"
#include "spinney/neighbors/ball_tree.h"
#include "spinney/neighbors/brute_force.h"
#include "spinney/neighbors/kd_tree.h"
#include "spinney/neighbors/minkowski.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::neighbors;
using distance::RowIndex;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

enum class Values { random, grid, equal };

// Grids have many ties and duplicates.
std::vector<double> draw_points(std::size_t n, std::size_t d, Values values, std::uint64_t seed) {
  common::Stream stream(seed, common::Purpose::rows, n * 31 + d);
  std::vector<double> out(n * d, 1.0);
  for (double& value : out) {
    if (values == Values::random) value = stream.uniform() - 0.5;
    if (values == Values::grid) value = static_cast<double>(stream.below(4));
  }
  return out;
}

// The distance before its root, with coordinates in order.
template <class Metric>
double sum_parts(const Metric& metric, const double* a, const double* b, std::size_t d) {
  double sum = 0;
  for (std::size_t j = 0; j < d; ++j) sum = metric.join(sum, metric.part(a[j] - b[j]));
  return sum;
}

// All rows as (distance, index), nearest first; the smaller index wins a tie.
template <class Measure>
std::vector<std::pair<double, RowIndex>> rank_rows(std::size_t n, const Measure& measure) {
  std::vector<std::pair<double, RowIndex>> out;
  for (std::size_t i = 0; i < n; ++i) out.emplace_back(measure(i), static_cast<RowIndex>(i));
  std::sort(out.begin(), out.end());
  return out;
}

// Counts rows, indices and distances that differ from those of the ranked rows within a limit.
int count_differences(const Found& found, std::size_t query, std::size_t first,
                      std::vector<std::pair<double, RowIndex>> expected, bool sorted) {
  if (!sorted) {
    std::sort(expected.begin(), expected.end(),
              [](const auto& a, const auto& b) { return a.second < b.second; });
  }
  if (found.counts[query] != static_cast<RowIndex>(expected.size())) return 1;
  int n = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    n += found.distances[first + i] != expected[i].first;
    n += found.indices[first + i] != expected[i].second;
  }
  return n;
}

template <class Metric>
void check_kd_tree(const Metric& metric, double p, std::size_t d, Values values,
                   std::size_t leaf_size) {
  const std::size_t n = 300, n_queries = 12;
  const std::vector<double> points = draw_points(n, d, values, 1);
  std::vector<double> queries = draw_points(n_queries, d, values, 2);
  std::copy_n(points.begin(), d, queries.begin());  // one query is a point
  const KdTree tree(points.data(), n, d, p, leaf_size, 1);
  std::vector<double> radii(n_queries);
  for (const std::size_t k : {std::size_t{1}, std::size_t{7}, std::size_t{50}, n}) {
    std::vector<double> distances(n_queries * k);
    std::vector<RowIndex> indices(n_queries * k);
    tree.query(queries.data(), n_queries, {k, 0, 0, 1}, distances.data(), indices.data());
    int n_different = 0;
    for (std::size_t q = 0; q < n_queries; ++q) {
      const auto ranked = rank_rows(n, [&](std::size_t i) {
        return sum_parts(metric, queries.data() + q * d, points.data() + i * d, d);
      });
      for (std::size_t j = 0; j < k; ++j) {
        n_different += indices[q * k + j] != ranked[j].second && d < kd_lanes;
        // With eight lanes or more, the sums of boxes and points have different orders.
        n_different += distances[q * k + j] != metric.root(ranked[j].first) && d < kd_lanes;
        CHECK_NEAR(distances[q * k + j], metric.root(ranked[j].first), 1e-12);
      }
      if (k == 7) radii[q] = distances[q * k + 6];
    }
    CHECK(n_different == 0);
  }
  radii[n_queries - 1] = -1;
  for (const bool sorted : {false, true}) {
    const Found found = tree.within(queries.data(), n_queries, radii.data(), sorted, 1);
    const auto counts = tree.count_within(queries.data(), n_queries, radii.data(), 3);
    CHECK(found.counts == counts);
    int n_different = 0;
    std::size_t first = 0;
    for (std::size_t q = 0; q < n_queries; ++q) {
      auto ranked = rank_rows(n, [&](std::size_t i) {
        return sum_parts(metric, queries.data() + q * d, points.data() + i * d, d);
      });
      std::erase_if(ranked, [&](const auto& row) {
        return radii[q] < 0 || !(row.first <= metric.power(radii[q]));
      });
      for (auto& row : ranked) row.first = metric.root(row.first);
      n_different += count_differences(found, q, first, ranked, sorted);
      first += ranked.size();
    }
    CHECK(n_different == 0);
  }
}

// Formulas of the metrics of ball trees, with n_features = 3.
double naive_distance(const BallDistance& metric, const double* a, const double* b) {
  double sum = 0, largest = 0, canberra = 0, both = 0, differ = 0, unequal = 0;
  for (std::size_t j = 0; j < 3; ++j) {
    const double weight = metric.weights.empty() ? 1 : metric.weights[j];
    const double difference = std::abs(a[j] - b[j]);
    if (!std::isinf(metric.p)) sum += weight * std::pow(difference, metric.p);
    largest = std::max(largest, weight * difference);
    if (difference > 0) canberra += difference / (std::abs(a[j]) + std::abs(b[j]));
    both += a[j] != 0 && b[j] != 0;
    differ += (a[j] != 0) != (b[j] != 0);
    unequal += a[j] != b[j];
  }
  switch (metric.kind) {
    case BallMetric::minkowski:
      return std::isinf(metric.p) ? largest : std::pow(sum, 1 / metric.p);
    case BallMetric::hamming:
      return unequal / 3;
    case BallMetric::canberra:
      return canberra;
    case BallMetric::jaccard:
      return differ == 0 ? 0 : differ / (both + differ);
    case BallMetric::rogers_tanimoto:
      return 2 * differ / (3 + differ);
    case BallMetric::sokal_sneath:
      return differ == 0 ? 0 : 2 * differ / (both + 2 * differ);
    default:
      return largest;  // of the custom metric below
  }
}

void check_ball_tree(const BallDistance& metric, std::size_t d, Values values) {
  const std::size_t n = 200, n_queries = 9, k = 8;
  const std::vector<double> points = draw_points(n, d, values, 3);
  const std::vector<double> queries = draw_points(n_queries, d, values, 4);
  for (const std::size_t leaf_size : {1, 5, 300}) {
    const BallTree tree(points.data(), n, d, metric, leaf_size);
    std::vector<double> distances(n_queries * k), radii(n_queries);
    std::vector<RowIndex> indices(n_queries * k);
    tree.query(queries.data(), n_queries, k, 2, distances.data(), indices.data());
    int n_different = 0;
    std::vector<std::vector<std::pair<double, RowIndex>>> ranked(n_queries);
    for (std::size_t q = 0; q < n_queries; ++q) {
      ranked[q] = rank_rows(n, [&](std::size_t i) {
        return metric(queries.data() + q * d, points.data() + i * d, d);
      });
      for (std::size_t j = 0; j < k; ++j) {
        n_different += distances[q * k + j] != ranked[q][j].first;
        n_different += indices[q * k + j] != ranked[q][j].second;
      }
      radii[q] = ranked[q][k].first;
    }
    for (const bool sorted : {false, true}) {
      const Found found = tree.within(queries.data(), n_queries, radii.data(), sorted, 2);
      std::size_t first = 0;
      for (std::size_t q = 0; q < n_queries; ++q) {
        auto expected = ranked[q];
        std::erase_if(expected, [&](const auto& row) { return !(row.first <= radii[q]); });
        n_different += count_differences(found, q, first, expected, sorted);
        first += expected.size();
      }
    }
    CHECK(n_different == 0);
  }
}

// Brute force for one block of queries; rows arrive in blocks of `block_size`.
template <class T>
void search_by_products(const std::vector<T>& points, std::size_t d,
                        const std::vector<double>& queries, std::size_t k, std::size_t block_size,
                        std::vector<double>& distances, std::vector<RowIndex>& indices) {
  const std::size_t n = points.size() / d, n_queries = queries.size() / d;
  const std::vector<double> centre(d, 0.25);
  std::vector<float> centred(n * d), half_norms(n), error(n_queries);
  const double longest = std::sqrt(
      2 * centre_rows(points.data(), n, d, centre.data(), 2, centred.data(), half_norms.data()));
  std::vector<float> rounded(n_queries * d);
  for (std::size_t q = 0; q < n_queries; ++q) {
    double square = 0;
    for (std::size_t j = 0; j < d; ++j) {
      const double difference = queries[q * d + j] - centre[j];
      rounded[q * d + j] = static_cast<float>(difference);
      square += difference * difference;
    }
    const auto width = static_cast<double>(d + 4);
    error[q] = static_cast<float>(1e-6 * longest * (width * std::sqrt(square) + longest));
  }
  BruteSelection selection(n_queries, k, error);
  for (std::size_t first = 0; first < n; first += block_size) {
    const std::size_t size = std::min(block_size, n - first);
    std::vector<float> products(n_queries * size, 0.0F);
    for (std::size_t q = 0; q < n_queries; ++q) {
      for (std::size_t i = 0; i < size; ++i) {
        for (std::size_t j = 0; j < d; ++j) {
          products[q * size + i] += rounded[q * d + j] * centred[(first + i) * d + j];
        }
      }
    }
    selection.add_block(products.data(), half_norms.data() + first, size, first, 2);
  }
  distances.assign(n_queries * k, -1.0);
  indices.assign(n_queries * k, -1);
  selection.finish(points.data(), n, d, queries.data(), 2, distances.data(), indices.data());
}

template <class T>
void check_brute_force(std::size_t n, std::size_t d, Values values, std::size_t k) {
  const std::vector<double> drawn = draw_points(n, d, values, 5);
  const std::vector<T> points(drawn.begin(), drawn.end());
  const std::vector<double> queries = draw_points(7, d, values, 6);
  for (const std::size_t block_size : {std::size_t{33}, n}) {
    std::vector<double> distances;
    std::vector<RowIndex> indices;
    search_by_products(points, d, queries, k, block_size, distances, indices);
    int n_different = 0;
    for (std::size_t q = 0; q < 7; ++q) {
      const auto ranked = rank_rows(n, [&](std::size_t i) {
        double sum = 0;
        for (std::size_t j = 0; j < d; ++j) {
          const double difference = queries[q * d + j] - static_cast<double>(points[i * d + j]);
          sum += difference * difference;
        }
        return sum;
      });
      for (std::size_t j = 0; j < k; ++j) {
        n_different += indices[q * k + j] != ranked[j].second;
        CHECK_NEAR(distances[q * k + j], std::sqrt(ranked[j].first), 1e-12);
      }
    }
    CHECK(n_different == 0);
  }
}

}  // namespace

TEST(kd_tree_matches_a_naive_search) {
  for (const Values values : {Values::random, Values::grid, Values::equal}) {
    for (const std::size_t d : {1, 2, 3, 5, 9}) {
      for (const std::size_t leaf_size : {1, 8, 40}) {
        if (d < kd_lanes || values != Values::random) {
          check_kd_tree(Euclidean{}, 2, d, values, leaf_size);
        }
        check_kd_tree(Manhattan{}, 1, d, values, leaf_size);
        check_kd_tree(Chebyshev{}, infinity, d, values, leaf_size);
        check_kd_tree(Minkowski{3}, 3, d, values, leaf_size);
      }
    }
  }
}

TEST(kd_tree_does_not_depend_on_threads) {
  const std::size_t n = 30000, d = 3, n_queries = 700, k = 5;
  const std::vector<double> points = draw_points(n, d, Values::random, 7);
  const std::vector<double> queries = draw_points(n_queries, d, Values::random, 8);
  std::vector<double> one(n_queries * k), many(n_queries * k);
  std::vector<RowIndex> rows_of_one(n_queries * k), rows_of_many(n_queries * k);
  const KdTree tree(points.data(), n, d, 2, 16, 1), same(points.data(), n, d, 2, 16, 4);
  tree.query(queries.data(), n_queries, {k, 0, 0, 1}, one.data(), rows_of_one.data());
  same.query(queries.data(), n_queries, {k, 0, 0, 4}, many.data(), rows_of_many.data());
  CHECK(one == many);
  CHECK(rows_of_one == rows_of_many);
}

TEST(kd_tree_limits_error_and_leaves) {
  const std::size_t n = 500, d = 4, k = 6;
  const std::vector<double> points = draw_points(n, d, Values::random, 9);
  const std::vector<double> query = draw_points(1, d, Values::random, 10);
  const KdTree tree(points.data(), n, d, 2, 4, 1);
  std::vector<double> exact(k), rough(k);
  std::vector<RowIndex> indices(k);
  tree.query(query.data(), 1, {k, 0, 0, 1}, exact.data(), indices.data());
  tree.query(query.data(), 1, {k, 0.5, 0, 1}, rough.data(), indices.data());
  for (std::size_t i = 0; i < k; ++i) {
    CHECK(rough[i] >= exact[i]);
    CHECK(rough[i] <= 1.5 * exact[i]);
  }
  // One leaf has at most four points; the rest is missing.
  tree.query(query.data(), 1, {k, 0, 1, 1}, rough.data(), indices.data());
  CHECK(rough[0] < infinity);
  CHECK(rough[k - 1] == infinity);
  CHECK(indices[k - 1] == static_cast<RowIndex>(n));
}

TEST(ball_tree_matches_a_naive_search) {
  for (const Values values : {Values::random, Values::grid, Values::equal}) {
    for (const double p : {1.0, 2.0, 3.0, infinity}) {
      BallDistance metric;
      metric.p = p;
      check_ball_tree(metric, 3, values);
      metric.weights = {0.5, 2, 0};
      check_ball_tree(metric, 3, values);
    }
    for (const BallMetric kind : {BallMetric::hamming, BallMetric::canberra, BallMetric::jaccard,
                                  BallMetric::rogers_tanimoto, BallMetric::sokal_sneath}) {
      BallDistance metric;
      metric.kind = kind;
      check_ball_tree(metric, 3, values);
    }
    BallDistance haversine;
    haversine.kind = BallMetric::haversine;
    check_ball_tree(haversine, 2, values);
    BallDistance custom;
    custom.kind = BallMetric::custom;
    custom.custom = [](const double* a, const double* b) {
      return std::max({std::abs(a[0] - b[0]), std::abs(a[1] - b[1]), std::abs(a[2] - b[2])});
    };
    CHECK(!custom.is_parallel());
    check_ball_tree(custom, 3, values);
  }
}

TEST(ball_distances_match_their_formulas) {
  for (const Values values : {Values::random, Values::grid}) {
    const std::vector<double> rows = draw_points(40, 3, values, 11);
    for (const BallMetric kind :
         {BallMetric::minkowski, BallMetric::hamming, BallMetric::canberra, BallMetric::jaccard,
          BallMetric::rogers_tanimoto, BallMetric::sokal_sneath}) {
      for (const double p : {1.0, 2.0, 3.5, infinity}) {
        BallDistance metric;
        metric.kind = kind;
        metric.p = p;
        for (std::size_t i = 1; i < 40; ++i) {
          const double* const a = rows.data();
          const double* const b = rows.data() + 3 * i;
          CHECK_NEAR(metric(a, b, 3), naive_distance(metric, a, b), 1e-12);
        }
      }
    }
  }
  BallDistance haversine;
  haversine.kind = BallMetric::haversine;
  const double pole[] = {std::acos(-1.0) / 2, 0.3}, equator[] = {0, 1}, other[] = {0, 1.5};
  CHECK_NEAR(haversine(pole, equator, 2), std::acos(-1.0) / 2, 1e-14);
  CHECK_NEAR(haversine(equator, other, 2), 0.5, 1e-14);
}

TEST(brute_force_matches_a_naive_search) {
  for (const std::size_t d : {1, 3, 8, 21}) {
    for (const std::size_t k : {1, 10, 90}) {
      for (const Values values : {Values::random, Values::grid, Values::equal}) {
        check_brute_force<double>(90, d, values, k);
        check_brute_force<float>(90, d, values, k);
      }
    }
  }
  // Equal rows, which single precision cannot separate, overflow the list of candidates.
  check_brute_force<double>(6000, 2, Values::equal, 3);
}
