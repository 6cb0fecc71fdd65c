#include "spinney/boosting/boost_options.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>

#include "spinney/common/check.h"

namespace spinney::boosting {

namespace {

template <class T>
void require(bool valid, const char* name, const char* expected, T found) {
  if (valid) return;
  std::ostringstream message;
  message << name << " must be " << expected << "; got " << found;
  throw common::InputError(message.str());
}

void check_fraction(const char* name, double value) {
  require(value > 0 && value <= 1, name, "more than 0 and at most 1", value);
}

void check_penalty(const char* name, double value) {
  require(value >= 0 && std::isfinite(value), name, "a number of at least 0", value);
}

void check_loss(const loss::Loss& loss) {
  require(loss.n_scores >= 1, "n_scores", "at least 1", loss.n_scores);
  require(loss.n_targets == 1 || loss.n_targets == loss.n_scores, "n_targets", "1 or n_scores",
          loss.n_targets);
  require(loss.levels.empty() || loss.levels.size() == loss.n_scores, "len(levels)",
          "0 or n_scores", loss.levels.size());
}

}  // namespace

void check_options(const BoostOptions& options) {
  check_loss(options.loss);
  require(options.learning_rate > 0 && std::isfinite(options.learning_rate), "learning_rate",
          "a positive number", options.learning_rate);
  check_fraction("subsample", options.subsample);
  const TreeRules& tree = options.tree;
  require(tree.max_leaf_nodes >= 1, "max_leaf_nodes", "at least 1 or None", tree.max_leaf_nodes);
  check_fraction("max_features_tree", tree.max_features_tree);
  check_fraction("max_features_level", tree.max_features_level);
  check_fraction("max_features", tree.max_features);
  check_penalty("l2_regularization", tree.split.l2_regularization);
  check_penalty("l1_regularization", tree.split.l1_regularization);
  check_penalty("min_split_gain", tree.split.min_split_gain);
  check_penalty("min_hessian_leaf", tree.split.min_hessian_leaf);
  for (const std::int8_t sign : tree.split.monotonic_cst) {
    require(sign >= -1 && sign <= 1, "monotonic_cst", "-1, 0 or 1 for each column", int{sign});
  }
  if (options.loss.kind == loss::LossKind::ranking) {
    const std::vector<std::uint32_t>& starts = options.group_starts;
    require(!starts.empty() && std::is_sorted(starts.begin(), starts.end()), "group_starts",
            "ascending rows with the number of rows at the end", starts.size());
  }
}

void check_columns(const TreeRules& rules, std::size_t n_features) {
  const std::size_t n_signs = rules.split.monotonic_cst.size();
  require(n_signs == 0 || n_signs == n_features, "len(monotonic_cst)", "the number of columns",
          n_signs);
  for (const std::vector<std::uint32_t>& set : rules.interaction_cst) {
    for (const std::uint32_t column : set) {
      require(column < n_features, "interaction_cst", "numbers of columns", column);
    }
  }
}

}  // namespace spinney::boosting
