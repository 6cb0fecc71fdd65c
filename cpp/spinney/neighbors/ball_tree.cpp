#include "spinney/neighbors/ball_tree.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "spinney/common/parallel.h"
#include "spinney/neighbors/minkowski.h"

namespace spinney::neighbors {

using common::parallel_for;
using common::Row;
using common::worthwhile_threads;

namespace {

// Distances are rounded, and so the triangle inequality holds up to this share of them.
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
  const double north = std::sin(0.5 * (a[0] - b[0]));
  const double east = std::sin(0.5 * (a[1] - b[1]));
  const double root = std::sqrt(north * north + std::cos(a[0]) * std::cos(b[0]) * east * east);
  return 2 * std::asin(std::min(root, 1.0));
}

struct Answers {
  double both = 0;    // columns where both say yes
  double differ = 0;  // … where one does
};

Answers count_answers(const double* a, const double* b, std::size_t d) {
  Answers answers;
  for (std::size_t j = 0; j < d; ++j) {
    answers.both += a[j] != 0 && b[j] != 0 ? 1 : 0;
    answers.differ += (a[j] != 0) != (b[j] != 0) ? 1 : 0;
  }
  return answers;
}

// Rows without a difference have no distance, even where there is nothing to divide by.
double share(double part, double whole) { return part == 0 ? 0 : part / whole; }

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
        const double below = std::abs(a[j]) + std::abs(b[j]);
        if (below > 0) sum += std::abs(a[j] - b[j]) / below;
      }
      return sum;
    }
    case BallMetric::jaccard: {
      const Answers answers = count_answers(a, b, d);
      return share(answers.differ, answers.both + answers.differ);
    }
    case BallMetric::rogers_tanimoto: {
      const double differ = count_answers(a, b, d).differ;
      return share(2 * differ, static_cast<double>(d) + differ);
    }
    case BallMetric::sokal_sneath: {
      const Answers answers = count_answers(a, b, d);
      return share(2 * answers.differ, answers.both + 2 * answers.differ);
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
  std::vector<std::pair<double, Row>> lean;  // towards the first of two far rows
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
        const double here = measure(points_.data() + std::size_t{from} * d_, rows[i]);
        if (here > distance) {
          distance = here;
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
    double apart = 0;
    const Row second = farthest_from(first, apart);
    lean.clear();
    for (Row i = node.begin; i < node.end; ++i) {
      const double to_first = measure(points_.data() + std::size_t{first} * d_, rows[i]);
      const double to_second = measure(points_.data() + std::size_t{second} * d_, rows[i]);
      lean.emplace_back(to_first - to_second, rows[i]);
    }
    const auto middle = lean.begin() + n / 2;
    std::nth_element(lean.begin(), middle, lean.end());
    for (Row i = 0; i < n; ++i) order_[node.begin + i] = lean[i].second;
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
    if (node.radius == 0) {  // one point many times, in the order of the numbers
      const double distance = measure(query, order_[node.begin]);
      for (Row i = node.begin; i < node.end; ++i) {
        if (distance > out.worst()) break;
        if (distance == out.worst() &&
            static_cast<distance::Place>(order_[i]) > out.worst_place()) {
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
                     double* distances, distance::Place* places) const {
  constexpr std::size_t block = 32;
  const double work = 2000.0 * static_cast<double>(n_queries);
  parallel_for((n_queries + block - 1) / block,
               worthwhile_threads(work, is_parallel() ? n_threads : 1),
               [&](std::size_t piece, int) {
                 distance::Nearest found(k);
                 const std::size_t end = std::min(n_queries, (piece + 1) * block);
                 for (std::size_t i = piece * block; i < end; ++i) {
                   found.clear();
                   find(queries + i * d_, found);
                   found.sort();
                   std::copy_n(found.distances(), k, distances + i * k);
                   std::copy_n(found.places(), k, places + i * k);
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
