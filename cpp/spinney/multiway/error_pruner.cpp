#include "spinney/multiway/error_pruner.h"

#include <algorithm>
#include <cmath>

#include "spinney/common/elementary.h"
#include "spinney/common/log.h"

namespace spinney::multiway {

namespace {

// The upper p-quantile of the standard normal: a rational approximation, refined by Halley steps.
double normal_quantile_above(double p) {
  constexpr double sqrt_2 = 1.4142135623730951;
  constexpr double sqrt_2pi = 2.5066282746310002;
  const bool upper = p > 0.5;
  const double tail = upper ? 1 - p : p;
  const double t = std::sqrt(-2 * common::log(tail));
  double z = t - (2.515517 + 0.802853 * t + 0.010328 * t * t) /
                     (1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t * t * t);
  for (int step = 0; step < 3; ++step) {
    const double error = 0.5 * common::erfc(z / sqrt_2) - tail;
    const double u = error * sqrt_2pi * common::exp_unclamped(z * z / 2);
    z += u / (1 - z * u / 2);
  }
  return upper ? -z : z;
}

class ErrorPruner {
 public:
  ErrorPruner(const QuinlanRows& rows, double confidence, bool subtree_raising,
              common::Watch& watch, MultiwayTree& tree)
      : rows_(rows),
        confidence_(confidence),
        subtree_raising_(subtree_raising),
        watch_(watch),
        nodes_(tree.nodes) {}

  void run() { prune(0, rows_.items); }

 private:
  double errors_as_leaf(const MultiwayNode& node) const {
    const double errors = node.weight - node.majority_weight();
    return errors + extra_errors(node.weight, errors, confidence_);
  }

  // The expected errors of a subtree on these rows.
  double estimate(std::size_t at, const QuinlanItems& items) const {
    MultiwayNode here = nodes_[at];
    if (here.is_leaf()) {
      rows_.count(items, here);
      return errors_as_leaf(here);
    }
    double sum = 0;
    const std::vector<QuinlanItems> branches = rows_.partition(items, here);
    for (std::size_t b = 0; b < branches.size(); ++b) {
      if (branches[b].size() == 0) continue;
      sum += estimate(static_cast<std::size_t>(here.children[b]), branches[b]);
    }
    return sum;
  }

  // Prunes a subtree that these rows reach; returns its expected errors.
  double prune(std::size_t at, const QuinlanItems& items) {
    constexpr double slack = 0.1;  // as in C4.5
    rows_.count(items, nodes_[at]);
    watch_.poll(100 + 20 * items.size());
    const double leaf_errors = errors_as_leaf(nodes_[at]);
    if (nodes_[at].is_leaf()) return leaf_errors;
    double tree_errors = 0;
    std::size_t largest = 0;
    {
      const std::vector<QuinlanItems> branches = rows_.partition(items, nodes_[at]);
      for (std::size_t b = 0; b < branches.size(); ++b) {
        const auto child = static_cast<std::size_t>(nodes_[at].children[b]);
        if (branches[b].size() == 0) {
          nodes_[child].make_leaf();
          rows_.count(branches[b], nodes_[child]);
          continue;
        }
        tree_errors += prune(child, branches[b]);
        if (nodes_[at].shares[b] > nodes_[at].shares[largest]) largest = b;
      }
    }
    const auto branch = static_cast<std::size_t>(nodes_[at].children[largest]);
    const bool can_raise = subtree_raising_ && !nodes_[branch].is_leaf();
    const double branch_errors = can_raise ? estimate(branch, items) : leaf_errors;
    if (leaf_errors <= tree_errors + slack && leaf_errors <= branch_errors + slack) {
      nodes_[at].make_leaf();
      return leaf_errors;
    }
    if (can_raise && branch_errors <= tree_errors + slack) {
      nodes_[at] = MultiwayNode(nodes_[branch]);
      return prune(at, items);
    }
    return tree_errors;
  }

  const QuinlanRows& rows_;
  double confidence_;
  bool subtree_raising_;
  common::Watch& watch_;
  std::vector<MultiwayNode>& nodes_;
};

}  // namespace

double extra_errors(double n, double e, double confidence) {
  if (n <= 0) return 0;
  // e = 0: (1 − p)^n = confidence. 0 < e < 1: linear interpolation. e >= 1: the limit of the normal
  // approximation with continuity correction.
  const double zero_errors = n * (1 - common::exp_unclamped(common::log(confidence) / n));
  if (e < 1e-6) return zero_errors;
  if (e < 0.9999) return zero_errors + e * (extra_errors(n, 1.0, confidence) - zero_errors);
  if (e + 0.5 >= n) return 0.67 * std::max(n - e, 0.0);
  const double z = normal_quantile_above(confidence);
  const double square = z * z;
  const double f = (e + 0.5) / n;
  const double p =
      (f + square / (2 * n) + z * std::sqrt(f / n - f * f / n + square / (4 * n * n))) /
      (1 + square / n);
  return p * n - e;
}

void prune_by_errors(const QuinlanRows& rows, double confidence, bool subtree_raising,
                     common::Watch& watch, MultiwayTree& tree) {
  ErrorPruner(rows, confidence, subtree_raising, watch, tree).run();
}

}  // namespace spinney::multiway
