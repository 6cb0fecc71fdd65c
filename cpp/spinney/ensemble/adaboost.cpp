#include "spinney/ensemble/adaboost.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "spinney/common/check.h"
#include "spinney/common/elementary.h"
#include "spinney/common/log.h"
#include "spinney/tree/counted_grower.h"
#include "spinney/tree/prepared_table.h"
#include "spinney/tree/presorted_table.h"

namespace spinney::ensemble {

using common::Watch;

namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();
constexpr double rounding = 1e-12;  // tolerance for an error equal to chance

std::size_t index_of_largest(const double* values, std::size_t n) {
  return static_cast<std::size_t>(std::max_element(values, values + n) - values);
}

// Grows one tree after another under weights that it changes between them.
class Learner {
 public:
  virtual ~Learner() = default;
  virtual void grow(std::uint64_t seed, Watch& watch) = 0;
  // The last tree, and the class weights in its leaves: [node * n_classes + class].
  virtual const forest::Tree& tree() const = 0;
  virtual const std::vector<double>& sums() const = 0;
  // Multiplies weights by the factors of their leaf and class; the minimum is epsilon.
  virtual void reweigh(const std::vector<double>& factors) = 0;
};

class ShallowLearner final : public Learner {
 public:
  ShallowLearner(const table::Table& table, const criterion::Targets& targets,
                 const tree::GrowOptions& options, double* weights)
      : grower_(table, targets, options, weights) {}
  void grow(std::uint64_t seed, Watch& watch) override { grower_.grow(seed, watch); }
  const forest::Tree& tree() const override { return grower_.tree(); }
  const std::vector<double>& sums() const override { return grower_.sums(); }
  void reweigh(const std::vector<double>& factors) override { grower_.reweigh(factors, epsilon); }

 private:
  tree::CountedGrower grower_;
};

class AnyLearner final : public Learner {
 public:
  AnyLearner(const table::Table& table, const criterion::Targets& targets,
             const tree::GrowOptions& options, double* weights)
      : targets_(targets), options_(options), weights_(weights), n_classes_(targets.n_classes[0]) {
    const bool all_columns = options.max_features == 0 ||
                             options.max_features >= static_cast<std::int64_t>(table.n_features());
    if (all_columns && !options.random_splits) {
      presorted_ = std::make_unique<tree::PresortedTable>(table, targets_, options.criterion,
                                                          options.n_threads);
    } else {
      prepared_ =
          std::make_unique<tree::PreparedTable>(table, options.random_splits, options.n_threads);
    }
  }

  void grow(std::uint64_t seed, Watch& watch) override {
    options_.seed = seed;
    if (presorted_ != nullptr) {
      tree::grow_tree(*presorted_, targets_, options_, watch, scratch_);
    } else {
      tree::grow_tree(*prepared_, targets_, options_, watch, scratch_);
    }
    sums_.assign(scratch_.tree.size() * n_classes_, 0.0);
    for_leaf_rows([&](common::Row row, std::size_t node) {
      sums_[node * n_classes_ + targets_.labels[row]] += weights_[row];
    });
  }

  const forest::Tree& tree() const override { return scratch_.tree; }
  const std::vector<double>& sums() const override { return sums_; }

  void reweigh(const std::vector<double>& factors) override {
    for_leaf_rows([&](common::Row row, std::size_t node) {
      const double factor = factors[node * n_classes_ + targets_.labels[row]];
      weights_[row] = std::max(weights_[row] * factor, epsilon);
    });
  }

 private:
  // Calls body(row, node) for the rows of each leaf.
  template <class Body>
  void for_leaf_rows(const Body& body) const {
    const forest::Tree& tree = scratch_.tree;
    std::vector<std::size_t> stack{0};
    std::size_t at = 0;
    while (!stack.empty()) {
      const std::size_t node = stack.back();
      stack.pop_back();
      if (tree.left[node] != forest::no_child) {
        stack.push_back(static_cast<std::size_t>(tree.right[node]));
        stack.push_back(static_cast<std::size_t>(tree.left[node]));
        continue;
      }
      const std::size_t end = at + static_cast<std::size_t>(tree.n_rows[node]);
      for (; at < end; ++at) body(scratch_.rows[at], node);
    }
  }

  criterion::Targets targets_;
  tree::GrowOptions options_;
  double* weights_;
  std::size_t n_classes_;
  // One of the two: the first for trees that search all columns.
  std::unique_ptr<tree::PresortedTable> presorted_;
  std::unique_ptr<tree::PreparedTable> prepared_;
  tree::TreeScratch scratch_;
  std::vector<double> sums_;
};

class AdaBoost {
 public:
  AdaBoost(const table::Table& table, criterion::Targets targets, const AdaBoostOptions& options,
           double* weights)
      : options_(options), n_classes_(targets.n_classes[0]) {
    // Rows with weight zero are ignored; other weights never reach zero.
    for (std::size_t row = 0; row < targets.n_rows; ++row) {
      if (weights[row] > 0) weights[row] = std::max(weights[row], epsilon);
    }
    targets.weights = weights;
    targets.integral_weights = false;
    if (tree::CountedGrower::supports(table, targets, options.tree)) {
      learner_ = std::make_unique<ShallowLearner>(table, targets, options.tree, weights);
    } else {
      learner_ = std::make_unique<AnyLearner>(table, targets, options.tree, weights);
    }
  }

  void run(forest::Forest& forest, AdaBoostHistory& history, Watch& watch) {
    for (std::size_t round = 0; round < options_.n_rounds; ++round) {
      const bool last = round + 1 == options_.n_rounds;
      if (!add_tree(round, last, forest, history, watch)) return;
      watch.advance(1);
    }
  }

 private:
  // Returns false after the last tree.
  bool add_tree(std::size_t round, bool last, forest::Forest& forest, AdaBoostHistory& history,
                Watch& watch) {
    learner_->grow(options_.seeds[round], watch);
    const double error = find_error();
    double weight = 1;
    if (options_.kind != AdaBoostKind::real && error > 0) {
      const auto n = static_cast<double>(n_classes_);
      const double chance = options_.kind == AdaBoostKind::m1 ? 0.5 : 1.0 - 1.0 / n;
      if (error >= chance - rounding) {
        history.end = AdaBoostEnd::useless;
        return false;
      }
      const double more = options_.kind == AdaBoostKind::m1 ? 0.0 : common::log(n - 1);
      weight = options_.learning_rate * (common::log((1 - error) / error) + more);
    }
    forest.trees.push_back(forest::compact(learner_->tree(), forest.shape, forest.n_categories));
    history.weights.push_back(weight);
    history.errors.push_back(error);
    if (error <= 0) {
      history.end = AdaBoostEnd::perfect;
      return false;
    }
    if (last) return true;
    if (!reweigh(weight)) {
      history.end = AdaBoostEnd::overflow;
      return false;
    }
    return true;
  }

  // The weighted fraction of misclassified rows.
  double find_error() const {
    const forest::Tree& tree = learner_->tree();
    double all = 0;
    double wrong = 0;
    for (std::size_t node = 0; node < tree.size(); ++node) {
      if (tree.left[node] != forest::no_child) continue;
      const std::size_t predicted = class_of(node);
      for (std::size_t k = 0; k < n_classes_; ++k) {
        const double sum = learner_->sums()[node * n_classes_ + k];
        all += sum;
        if (k != predicted) wrong += sum;
      }
    }
    return wrong / all;
  }

  std::size_t class_of(std::size_t node) const {
    const forest::Tree& tree = learner_->tree();
    return index_of_largest(tree.value.data() + node * tree.value_size, n_classes_);
  }

  // Returns false if the sum of weights is not finite.
  bool reweigh(double weight) {
    const forest::Tree& tree = learner_->tree();
    std::vector<double> factors(tree.size() * n_classes_);
    double sum = 0;
    for (std::size_t node = 0; node < tree.size(); ++node) {
      if (tree.left[node] != forest::no_child) continue;
      double* const of_leaf = factors.data() + node * n_classes_;
      if (options_.kind == AdaBoostKind::real) {
        find_factors_of_probabilities(tree.value.data() + node * tree.value_size, of_leaf);
      } else {
        std::fill(of_leaf, of_leaf + n_classes_, common::exp_unclamped(weight));
        of_leaf[class_of(node)] = 1;
      }
      for (std::size_t k = 0; k < n_classes_; ++k) {
        const double weight_here = learner_->sums()[node * n_classes_ + k];
        if (weight_here > 0) sum += weight_here * of_leaf[k];
      }
    }
    if (!std::isfinite(sum)) return false;
    for (double& factor : factors) factor /= sum;
    learner_->reweigh(factors);
    return true;
  }

  // exp(−ν (K − 1)/K Σ_j y_j log p_j) with y_j = 1 for the row's class, −1/(K − 1) else.
  void find_factors_of_probabilities(const double* p, double* out) const {
    const auto n = static_cast<double>(n_classes_);
    double sum = 0;
    for (std::size_t k = 0; k < n_classes_; ++k) sum += common::log(std::max(p[k], epsilon));
    for (std::size_t k = 0; k < n_classes_; ++k) {
      const double own = common::log(std::max(p[k], epsilon));
      const double agreement = own - (sum - own) / (n - 1);
      out[k] = common::exp_unclamped(-options_.learning_rate * (n - 1) / n * agreement);
    }
  }

  const AdaBoostOptions& options_;
  std::size_t n_classes_;
  std::unique_ptr<Learner> learner_;
};

}  // namespace

void adaboost(const table::Table& table, const criterion::Targets& targets,
              const AdaBoostOptions& options, double* weights, forest::Forest& forest,
              AdaBoostHistory& history, Watch& watch) {
  if (targets.n_outputs != 1 || targets.labels == nullptr) {
    throw common::InputError("AdaBoost: expected one output of classes");
  }
  AdaBoost(table, targets, options, weights).run(forest, history, watch);
}

}  // namespace spinney::ensemble
