#include "spinney/neighbors/ball_tree.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "spinney/common/elementary.h"
#include "spinney/common/parallel.h"
#include "spinney/neighbors/minkowski.h"

namespace spinney::neighbors {

using common::parallel_for;
using common::Row;
using common::worthwhile_threads;

namespace {

// Distances are rounded, so the triangle inequality holds up to this relative error.
constexpr double slack = 1e-9;

template <class Metric>
double minkowski(const Metric& metric, const double* a, const double* b, std::size_t d,
                 const std::vector<double>& weights) {
  double sum = 0;
  for (std::size_t j = 0; j < d; ++j) {
    const double part = metric.part(a[j] - b[j]);
    sum = metric.join(sum, weights.empty() ? part : weights[j] * part);
  }
  return metric.root(sum);
}

double haversine(const double* a, const double* b) {
  const double north = common::sin(0.5 * (a[0] - b[0]));
  const double east = common::sin(0.5 * (a[1] - b[1]));
  const double root =
      std::sqrt(north * north + common::cos(a[0]) * common::cos(b[0]) * east * east);
  return 2 * common::asin(std::min(root, 1.0));
}

struct BooleanCounts {
  double both = 0;    // features that are true in both rows
  double differ = 0;  // features that are true in one row only
};

BooleanCounts count_true(const double* a, const double* b, std::size_t d) {
  BooleanCounts counts;
  for (std::size_t j = 0; j < d; ++j) {
    counts.both += a[j] != 0 && b[j] != 0 ? 1 : 0;
    counts.differ += (a[j] != 0) != (b[j] != 0) ? 1 : 0;
  }
  return counts;
}

// 0 / 0 is 0: the distance of equal rows is zero even if no feature is true.
double divide_or_zero(double numerator, double denominator) {
  return numerator == 0 ? 0 : numerator / denominator;
}

}  // namespace

double BallDistance::operator()(const double* a, const double* b, std::size_t d) const {
  switch (kind) {
    case BallMetric::haversine:
      return haversine(a, b);
    case BallMetric::hamming: {
      std::size_t n = 0;
      for (std::size_t j = 0; j < d; ++j) n += a[j] != b[j] ? 1 : 0;
      return static_cast<double>(n) / static_cast<double>(d);
    }
    case BallMetric::canberra: {
      double sum = 0;
      for (std::size_t j = 0; j < d; ++j) {
        const double sum_of_sizes = std::abs(a[j]) + std::abs(b[j]);
        if (sum_of_sizes > 0) sum += std::abs(a[j] - b[j]) / sum_of_sizes;
      }
      return sum;
    }
    case BallMetric::jaccard: {
      const BooleanCounts counts = count_true(a, b, d);
      return divide_or_zero(counts.differ, counts.both + counts.differ);
    }
    case BallMetric::rogers_tanimoto: {
      const double differ = count_true(a, b, d).differ;
      return divide_or_zero(2 * differ, static_cast<double>(d) + differ);
    }
    case BallMetric::sokal_sneath: {
      const BooleanCounts counts = count_true(a, b, d);
      return divide_or_zero(2 * counts.differ, counts.both + 2 * counts.differ);
    }
    case BallMetric::custom:
      return custom(a, b);
    default:
      break;
  }
  if (p == 2) return minkowski(Euclidean{}, a, b, d, weights);
  if (p == 1) return minkowski(Manhattan{}, a, b, d, weights);
  if (std::isinf(p)) return minkowski(Chebyshev{}, a, b, d, weights);
  return minkowski(Minkowski{p}, a, b, d, weights);
}

BallTree::BallTree(const double* points, std::size_t n, std::size_t d, BallDistance distance,
                   std::size_t leaf_size)
    : n_(n), d_(d), distance_(std::move(distance)), points_(points, points + n * d), order_(n) {
  std::iota(order_.begin(), order_.end(), Row{0});
  build(leaf_size);
}

void BallTree::build(std::size_t leaf_size) {
  nodes_.resize(1);
  nodes_[0].end = static_cast<Row>(n_);
  std::vector<std::size_t> open{0};
  std::vector<std::pair<double, Row>> ordered;  // by the difference of distances to two far rows
  while (!open.empty()) {
    const std::size_t at = open.back();
    open.pop_back();
    Node node = nodes_[at];
    const Row* const rows = order_.data();
    const Row n = node.end - node.begin;
    node.smallest = *std::min_element(rows + node.begin, rows + node.end);
    const auto farthest_from = [&](Row from, double& distance) {
      Row far = from;
      distance = 0;
      for (Row i = node.begin; i < node.end; ++i) {
        const double candidate = measure(points_.data() + std::size_t{from} * d_, rows[i]);
        if (candidate > distance) {
          distance = candidate;
          far = rows[i];
        }
      }
      return far;
    };
    node.centre = rows[node.begin + n / 2];
    const Row first = farthest_from(node.centre, node.radius);
    if (n <= leaf_size || node.radius == 0) {
      std::sort(order_.begin() + node.begin, order_.begin() + node.end);
      nodes_[at] = node;
      continue;
    }
    double diameter = 0;
    const Row second = farthest_from(first, diameter);
    ordered.clear();
    for (Row i = node.begin; i < node.end; ++i) {
      const double to_first = measure(points_.data() + std::size_t{first} * d_, rows[i]);
      const double to_second = measure(points_.data() + std::size_t{second} * d_, rows[i]);
      ordered.emplace_back(to_first - to_second, rows[i]);
    }
    const auto middle = ordered.begin() + n / 2;
    std::nth_element(ordered.begin(), middle, ordered.end());
    for (Row i = 0; i < n; ++i) order_[node.begin + i] = ordered[i].second;
    node.child = static_cast<std::uint32_t>(nodes_.size());
    nodes_[at] = node;
    Node left;
    left.begin = node.begin;
    left.end = node.begin + n / 2;
    Node right;
    right.begin = left.end;
    right.end = node.end;
    nodes_.push_back(left);
    nodes_.push_back(right);
    open.push_back(node.child + 1);
    open.push_back(node.child);
  }
}

void BallTree::find(const double* query, distance::Nearest& out) const {
  struct Open {
    std::size_t node;
    double bound;
  };
  const auto bound_of = [&](std::size_t node) {
    const double centre = measure(query, nodes_[node].centre);
    return std::max(centre - nodes_[node].radius - slack * (centre + nodes_[node].radius), 0.0);
  };
  std::vector<Open> stack{{0, bound_of(0)}};
  while (!stack.empty()) {
    const Open open = stack.back();
    stack.pop_back();
    const Node& node = nodes_[open.node];
    if (open.bound > out.worst()) continue;
    if (node.child != 0) {
      const double left = bound_of(node.child);
      const double right = bound_of(node.child + 1);
      const bool left_first = left <= right;
      stack.push_back({node.child + (left_first ? 1U : 0U), left_first ? right : left});
      stack.push_back({node.child + (left_first ? 0U : 1U), left_first ? left : right});
      continue;
    }
    if (node.radius == 0) {  // all points are equal; indices ascend
      const double distance = measure(query, order_[node.begin]);
      for (Row i = node.begin; i < node.end; ++i) {
        if (distance > out.worst()) break;
        if (distance == out.worst() &&
            static_cast<distance::RowIndex>(order_[i]) > out.worst_index()) {
          break;
        }
        out.add(distance, order_[i]);
      }
      continue;
    }
    for (Row i = node.begin; i < node.end; ++i) out.add(measure(query, order_[i]), order_[i]);
  }
}

void BallTree::query(const double* queries, std::size_t n_queries, std::size_t k, int n_threads,
                     double* distances, distance::RowIndex* indices) const {
  constexpr std::size_t block_size = 32;
  const double work = 2000.0 * static_cast<double>(n_queries);
  parallel_for((n_queries + block_size - 1) / block_size,
               worthwhile_threads(work, is_parallel() ? n_threads : 1),
               [&](std::size_t block, int) {
                 distance::Nearest found(k);
                 const std::size_t end = std::min(n_queries, (block + 1) * block_size);
                 for (std::size_t i = block * block_size; i < end; ++i) {
                   found.clear();
                   find(queries + i * d_, found);
                   found.sort();
                   std::copy_n(found.distances(), k, distances + i * k);
                   std::copy_n(found.indices(), k, indices + i * k);
                 }
               });
}

Found BallTree::within(const double* queries, std::size_t n_queries, const double* radii,
                       bool sorted, int n_threads) const {
  const double work = 2000.0 * static_cast<double>(n_queries);
  const int threads = worthwhile_threads(work, is_parallel() ? n_threads : 1);
  return gather_found(n_queries, sorted, threads, [&] {
    return [&, stack = std::vector<std::size_t>()](std::size_t i, auto& rows) mutable {
      const double* const query = queries + i * d_;
      const double radius = radii[i];
      stack.assign(1, 0);
      while (!stack.empty()) {
        const Node& node = nodes_[stack.back()];
        stack.pop_back();
        const double centre = measure(query, node.centre);
        if (centre - node.radius - slack * (centre + node.radius) > radius) continue;
        if (node.child != 0) {
          stack.push_back(node.child + 1);
          stack.push_back(node.child);
          continue;
        }
        for (Row at = node.begin; at < node.end; ++at) {
          const double distance = measure(query, order_[at]);
          if (distance <= radius) rows.emplace_back(distance, order_[at]);
        }
      }
    };
  });
}

}  // namespace spinney::neighbors
