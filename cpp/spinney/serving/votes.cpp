#include "spinney/serving/votes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "spinney/common/log.h"
#include "spinney/serving/forest_reader.h"

namespace spinney::serving {

namespace {

constexpr double epsilon = std::numeric_limits<double>::epsilon();

std::size_t index_of_largest(const double* values, std::size_t n) {
  return static_cast<std::size_t>(std::max_element(values, values + n) - values);
}

// log p_k − mean of log p, times K − 1; p is kept away from 0.
void add_log_votes(const double* p, std::size_t n_classes, double* out) {
  double mean = 0;
  for (std::size_t k = 0; k < n_classes; ++k) mean += common::log(std::max(p[k], epsilon));
  mean /= static_cast<double>(n_classes);
  for (std::size_t k = 0; k < n_classes; ++k) {
    out[k] += static_cast<double>(n_classes - 1) * (common::log(std::max(p[k], epsilon)) - mean);
  }
}

}  // namespace

void add_votes(const forest::Forest& forest, const table::Table& table, const double* tree_weights,
               bool real, std::size_t first, std::size_t last, int n_threads, double* out) {
  const std::size_t n_classes = forest.shape.width();
  forest::Forest part;  // trees [first, last)
  part.shape = forest.shape;
  part.n_categories = forest.n_categories;
  part.trees.assign(forest.trees.begin() + static_cast<std::ptrdiff_t>(first),
                    forest.trees.begin() + static_cast<std::ptrdiff_t>(last));
  std::vector<std::vector<double>> votes(part.trees.size());  // of each leaf
  for (std::size_t t = 0; t < part.trees.size(); ++t) {
    const forest::CompactTree& tree = part.trees[t];
    votes[t].resize(tree.n_leaves() * n_classes);
    std::vector<double> p(n_classes);
    for (std::size_t leaf = 0; leaf < tree.n_leaves(); ++leaf) {
      forest::leaf_values(tree, part.shape, leaf, p.data());
      double* const of_leaf = votes[t].data() + leaf * n_classes;
      if (real) {
        add_log_votes(p.data(), n_classes, of_leaf);
      } else {
        of_leaf[index_of_largest(p.data(), n_classes)] = tree_weights[first + t];
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

}  // namespace spinney::serving
