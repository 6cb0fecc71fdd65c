#include "spinney/ensemble/adaboost.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "spinney/common/check.h"
#include "spinney/ensemble/forest_reader.h"
#include "spinney/tree/counted_table.h"
#include "spinney/tree/prepared_table.h"
#include "spinney/tree/presorted_table.h"

namespace spinney {
namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();
constexpr double rounding = 1e-12;  // of an error that is no better than chance

// Calls body(row, node) for the rows of each leaf of the tree grown last.
template <class Body>
void for_leaf_rows(const TreeScratch& scratch, const Body& body) {
  const Tree& tree = scratch.tree;
  std::vector<std::size_t> stack{0};
  std::size_t at = 0;
  while (!stack.empty()) {
    const std::size_t node = stack.back();
    stack.pop_back();
    if (tree.left[node] != no_child) {
      stack.push_back(static_cast<std::size_t>(tree.right[node]));
      stack.push_back(static_cast<std::size_t>(tree.left[node]));
      continue;
    }
    const std::size_t end = at + static_cast<std::size_t>(tree.n_rows[node]);
    for (; at < end; ++at) body(scratch.rows[at], node);
  }
}

std::size_t place_of_largest(const double* values, std::size_t n) {
  return static_cast<std::size_t>(std::max_element(values, values + n) - values);
}

// log p_k − mean of log p, times K − 1; p is kept away from 0.
void add_log_votes(const double* p, std::size_t n_classes, double* out) {
  double mean = 0;
  for (std::size_t k = 0; k < n_classes; ++k) mean += std::log(std::max(p[k], epsilon));
  mean /= static_cast<double>(n_classes);
  for (std::size_t k = 0; k < n_classes; ++k) {
    out[k] += static_cast<double>(n_classes - 1) * (std::log(std::max(p[k], epsilon)) - mean);
  }
}

class AdaBoost {
 public:
  AdaBoost(const Table& table, const Targets& targets, const AdaBoostOptions& options,
           double* weights)
      : targets_(targets),
        options_(options),
        weights_(weights),
        n_rows_(targets.n_rows),
        n_classes_(targets.n_classes[0]),
        wrong_(n_rows_) {
    for (std::size_t row = 0; row < n_rows_; ++row) {
      if (weights[row] > 0) rows_.push_back(static_cast<Row>(row));
    }
    const GrowOptions& tree = options.tree;
    const bool all_columns = tree.max_features == 0 ||
                             tree.max_features >= static_cast<std::int64_t>(table.n_features());
    targets_.weights = weights;
    targets_.integral_weights = false;
    constexpr std::int64_t few_levels = 4;
    const bool cells_fit = static_cast<double>(n_rows_ + 2) * static_cast<double>(n_classes_) < 4e9;
    if (all_columns && !tree.random_splits && tree.max_depth <= few_levels && cells_fit) {
      counted_ = std::make_unique<CountedTable>(table, targets_, tree.criterion, tree.n_threads);
    } else if (all_columns && !tree.random_splits) {
      presorted_ =
          std::make_unique<PresortedTable>(table, targets_, tree.criterion, tree.n_threads);
    } else {
      prepared_ = std::make_unique<PreparedTable>(table, tree.random_splits, tree.n_threads);
    }
  }

  void run(Forest& forest, AdaBoostHistory& history, Watch& watch) {
    // Rows that had no weight from the beginning were left out; the others keep some.
    for (const Row row : rows_) weights_[row] = std::max(weights_[row], epsilon);
    for (std::size_t round = 0; round < options_.n_rounds; ++round) {
      const bool last = round + 1 == options_.n_rounds;
      if (!add_tree(round, last, forest, history, watch)) return;
      watch.advance(1);
    }
  }

 private:
  // False: it is the end.
  bool add_tree(std::size_t round, bool last, Forest& forest, AdaBoostHistory& history,
                Watch& watch) {
    GrowOptions tree_options = options_.tree;
    tree_options.seed = options_.seeds[round];
    if (counted_ != nullptr) {
      grow_tree(*counted_, targets_, tree_options, watch, scratch_);
    } else if (presorted_ != nullptr) {
      grow_tree(*presorted_, targets_, tree_options, watch, scratch_);
    } else {
      grow_tree(*prepared_, targets_, tree_options, watch, scratch_);
    }
    const Mistakes mistakes = mark_mistakes();
    const double error = mistakes.wrong / mistakes.all;
    double weight = 1;
    if (options_.kind != AdaBoostKind::real && error > 0) {
      const auto n = static_cast<double>(n_classes_);
      const double chance = options_.kind == AdaBoostKind::m1 ? 0.5 : 1.0 - 1.0 / n;
      if (error >= chance - rounding) {
        history.end = AdaBoostEnd::useless;
        return false;
      }
      const double more = options_.kind == AdaBoostKind::m1 ? 0.0 : std::log(n - 1);
      weight = options_.learning_rate * (std::log((1 - error) / error) + more);
    }
    forest.trees.push_back(compact(scratch_.tree, forest.shape, forest.n_categories));
    history.weights.push_back(weight);
    history.errors.push_back(std::max(error, 0.0));
    if (error <= 0) {
      history.end = AdaBoostEnd::perfect;
      return false;
    }
    if (last) return true;
    const double sum = options_.kind == AdaBoostKind::real ? reweigh_by_probability()
                                                           : reweigh_by_votes(mistakes, weight);
    if (!std::isfinite(sum)) {
      history.end = AdaBoostEnd::overflow;
      return false;
    }
    return true;
  }

  struct Mistakes {
    double wrong = 0;
    double all = 0;
  };

  // Sets wrong_, and sums the weights.
  Mistakes mark_mistakes() {
    const Tree& tree = scratch_.tree;
    std::vector<std::uint32_t> class_of(tree.size());
    for (std::size_t node = 0; node < tree.size(); ++node) {
      class_of[node] = static_cast<std::uint32_t>(
          place_of_largest(tree.value.data() + node * tree.value_size, n_classes_));
    }
    for_leaf_rows(scratch_, [&](Row row, std::size_t node) {
      wrong_[row] = class_of[node] != targets_.labels[row] ? 1 : 0;
    });
    // In turns, so that an addition need not wait for the one before.
    constexpr std::size_t n_turns = 4;
    double wrong[n_turns] = {};
    double all[n_turns] = {};
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const double w = weights_[rows_[i]];
      all[i % n_turns] += w;
      wrong[i % n_turns] += wrong_[rows_[i]] != 0 ? w : 0.0;
    }
    return {(wrong[0] + wrong[1]) + (wrong[2] + wrong[3]), (all[0] + all[1]) + (all[2] + all[3])};
  }

  // Weights of mistakes grow, all are scaled to sum to one; returns what they summed to.
  double reweigh_by_votes(const Mistakes& mistakes, double weight) {
    const double factor = std::exp(weight);
    const double sum = mistakes.all - mistakes.wrong + mistakes.wrong * factor;
    if (!std::isfinite(sum)) return sum;
    const double scale[2] = {1 / sum, factor / sum};
    for (const Row row : rows_) {
      weights_[row] = std::max(weights_[row] * scale[wrong_[row]], epsilon);
    }
    return sum;
  }

  // w ← w exp(−ν (K − 1)/K Σ_k y_k log p_k) with y_k = 1 for the row's class, −1/(K − 1) else.
  double reweigh_by_probability() {
    const Tree& tree = scratch_.tree;
    const auto n = static_cast<double>(n_classes_);
    std::vector<double> factor(tree.size() * n_classes_);
    for (std::size_t node = 0; node < tree.size(); ++node) {
      if (tree.left[node] != no_child) continue;
      const double* const p = tree.value.data() + node * tree.value_size;
      double sum = 0;
      for (std::size_t k = 0; k < n_classes_; ++k) sum += std::log(std::max(p[k], epsilon));
      for (std::size_t k = 0; k < n_classes_; ++k) {
        const double own = std::log(std::max(p[k], epsilon));
        const double agreement = own - (sum - own) / (n - 1);
        factor[node * n_classes_ + k] = std::exp(-options_.learning_rate * (n - 1) / n * agreement);
      }
    }
    double sum = 0;
    for_leaf_rows(scratch_, [&](Row row, std::size_t node) {
      weights_[row] *= factor[node * n_classes_ + targets_.labels[row]];
      sum += weights_[row];
    });
    if (!std::isfinite(sum)) return sum;
    for (const Row row : rows_) weights_[row] = std::max(weights_[row] / sum, epsilon);
    return sum;
  }

  Targets targets_;
  const AdaBoostOptions& options_;
  double* weights_;
  std::size_t n_rows_;
  std::size_t n_classes_;
  std::vector<Row> rows_;  // that had weight from the beginning
  // One of them: for trees of few levels, for others that look at all columns, and for the rest.
  std::unique_ptr<CountedTable> counted_;
  std::unique_ptr<PresortedTable> presorted_;
  std::unique_ptr<PreparedTable> prepared_;
  TreeScratch scratch_;
  std::vector<std::uint8_t> wrong_;
};

}  // namespace

void adaboost(const Table& table, const Targets& targets, const AdaBoostOptions& options,
              double* weights, Forest& forest, AdaBoostHistory& history, Watch& watch) {
  if (targets.n_outputs != 1 || targets.labels == nullptr) {
    throw InputError("AdaBoost: expected one output of classes");
  }
  AdaBoost(table, targets, options, weights).run(forest, history, watch);
}

void add_votes(const Forest& forest, const Table& table, const double* tree_weights, bool real,
               std::size_t first, std::size_t last, int n_threads, double* out) {
  const std::size_t n_classes = forest.shape.width();
  Forest part;  // the trees asked for
  part.shape = forest.shape;
  part.n_categories = forest.n_categories;
  part.trees.assign(forest.trees.begin() + static_cast<std::ptrdiff_t>(first),
                    forest.trees.begin() + static_cast<std::ptrdiff_t>(last));
  std::vector<std::vector<double>> votes(part.trees.size());  // of each leaf
  for (std::size_t t = 0; t < part.trees.size(); ++t) {
    const CompactTree& tree = part.trees[t];
    votes[t].resize(tree.n_leaves() * n_classes);
    std::vector<double> p(n_classes);
    for (std::size_t leaf = 0; leaf < tree.n_leaves(); ++leaf) {
      leaf_values(tree, part.shape, leaf, p.data());
      double* const of_leaf = votes[t].data() + leaf * n_classes;
      if (real) {
        add_log_votes(p.data(), n_classes, of_leaf);
      } else {
        of_leaf[place_of_largest(p.data(), n_classes)] = tree_weights[first + t];
      }
    }
  }
  visit_leaves(part, table, n_threads,
               [&](std::size_t begin, std::size_t n, std::size_t t, const std::uint32_t* leaves) {
                 for (std::size_t i = 0; i < n; ++i) {
                   const double* const of_leaf = votes[t].data() + leaves[i] * n_classes;
                   double* const to = out + (begin + i) * n_classes;
                   for (std::size_t k = 0; k < n_classes; ++k) to[k] += of_leaf[k];
                 }
               });
}

}  // namespace spinney
