#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "spinney/common/random.h"
#include "spinney/explain/leaf_game.h"
#include "spinney/explain/share_walk.h"
#include "spinney/explain/tree_explainer.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::explain;

namespace {

// A random complete tree; features may repeat along a path.
GameTree draw_tree(std::uint64_t seed, std::size_t n_levels, std::size_t n_features) {
  GameTree tree;
  common::Stream stream(seed, common::Purpose::rows, n_levels);
  const std::size_t n = (std::size_t{2} << n_levels) - 1;
  for (std::size_t node = 0; node < n; ++node) {
    const bool leaf = 2 * node + 2 >= n;
    tree.left.push_back(leaf ? -1 : static_cast<std::int32_t>(2 * node + 1));
    tree.right.push_back(leaf ? -1 : static_cast<std::int32_t>(2 * node + 2));
    tree.feature.push_back(
        static_cast<std::int32_t>(stream.below(static_cast<std::uint32_t>(n_features))));
    tree.threshold.push_back(stream.uniform());
    tree.missing_left.push_back(static_cast<std::uint8_t>(stream.below(2)));
    tree.category_start.push_back(forest::no_categories);
    tree.share_left.push_back(stream.uniform());
    tree.value.push_back(stream.uniform() - 0.5);
  }
  return tree;
}

struct Rows {
  std::size_t n;
  std::size_t d;
  std::vector<double> x;

  Rows(std::size_t n_rows, std::size_t n_features) : n(n_rows), d(n_features) {
    common::Stream stream(3, common::Purpose::rows, n);
    for (std::size_t i = 0; i < n * d; ++i) {
      x.push_back(stream.below(10) == 0 ? std::numeric_limits<double>::quiet_NaN()
                                        : stream.uniform());
    }
  }
  table::Table table() const {
    table::Table table;
    table.n_rows = n;
    for (std::size_t f = 0; f < d; ++f) {
      table::Column column;
      column.data = reinterpret_cast<const std::byte*>(x.data() + f);
      column.stride = static_cast<std::ptrdiff_t>(d * sizeof(double));
      table.columns.push_back(column);
    }
    return table;
  }
};

double predict(const GameTree& tree, const double* row) {
  std::size_t node = 0;
  while (!tree.is_leaf(node)) {
    const bool left = tree.goes_left(node, row[tree.feature[node]]);
    node = static_cast<std::size_t>(left ? tree.left[node] : tree.right[node]);
  }
  return tree.value[node];
}

}  // namespace

TEST(quadrature_is_exact_for_polynomials) {
  std::vector<double> nodes;
  std::vector<double> weights;
  for (std::size_t n = 1; n <= 20; ++n) {
    gauss_legendre(n, nodes, weights);
    for (std::size_t a = 0; a < 2 * n; ++a) {
      const std::size_t b = 2 * n - 1 - a;
      double sum = 0;
      for (std::size_t k = 0; k < n; ++k) {
        sum += weights[k] * std::pow(nodes[k], static_cast<double>(a)) *
               std::pow(1 - nodes[k], static_cast<double>(b));
      }
      CHECK(std::abs(sum / beta(a, b) - 1) < 1e-11);
    }
  }
}

TEST(leaf_game_of_a_single_coalition) {
  // Only the full pattern reaches the leaf, so all features get equal values.
  const std::size_t m = 5;
  std::vector<double> share(std::size_t{1} << m, 0.0);
  share[0] = 1;
  LeafGame game;
  game.set(m, share);
  std::vector<double> values;
  game.values(values);
  for (std::size_t pattern = 0; pattern < share.size(); ++pattern) {
    for (std::size_t i = 0; i < m; ++i) {
      const double expected = pattern + 1 == share.size() ? 0.2 : 0.0;
      CHECK(std::abs(values[pattern * m + i] - expected) < 1e-15);
    }
  }
}

TEST(explanations_add_up_with_every_algorithm) {
  // The number of levels and of rows selects tables or the walk.
  for (const std::size_t n_levels : {0, 1, 3, 6, 11}) {
    for (const bool with_background : {false, true}) {
      const std::size_t d = 14;
      const GameTree tree = draw_tree(n_levels, n_levels, d);
      TreeExplainer explainer(std::vector<std::int32_t>(d, 0), 1);
      GameTree copy = tree;
      explainer.append(std::move(copy));
      const Rows background(3, d);
      if (with_background) explainer.set_background(background.table());
      double base = 0;
      explainer.base_values(&base);
      for (const std::size_t n : {1, 5, 300}) {
        const Rows rows(n, d);
        std::vector<double> one(n * d, 0.0);
        std::vector<double> three(n * d, 0.0);
        common::Watch watch;
        explainer.explain(rows.table(), false, 1, one.data(), watch);
        explainer.explain(rows.table(), false, 3, three.data(), watch);
        CHECK(one == three);
        for (std::size_t row = 0; row < n; ++row) {
          double sum = base;
          for (std::size_t f = 0; f < d; ++f) sum += one[row * d + f];
          CHECK(std::abs(sum - predict(tree, rows.x.data() + row * d)) < 1e-12);
        }
      }
    }
  }
}

TEST(invalid_trees_are_rejected) {
  TreeExplainer explainer(std::vector<std::int32_t>(3, 0), 1);
  const auto refused = [&](GameTree tree) {
    try {
      explainer.append(std::move(tree));
    } catch (const common::InputError&) {
      return true;
    }
    return false;
  };
  const GameTree fine = draw_tree(0, 3, 3);
  GameTree tree = fine;
  tree.left[2] = 1;  // a cycle
  CHECK(refused(tree));
  tree = fine;
  tree.feature[0] = 3;
  CHECK(refused(tree));
  tree = fine;
  tree.value.pop_back();
  CHECK(refused(tree));
  tree = fine;
  tree.output = 1;
  CHECK(refused(tree));
  tree = fine;
  tree.category_start[0] = 0;  // categories of a numeric column
  CHECK(refused(tree));
  CHECK(!refused(fine));
}
