#include <cmath>
#include <limits>
#include <vector>

#include "spinney/common/random.h"
#include "spinney/serving/predict.h"
#include "spinney/tree/grower.h"
#include "spinney/tree/prune.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::forest;
using namespace spinney::serving;
using namespace spinney::tree;

namespace {

struct Data {
  std::size_t n = 0;
  std::size_t d = 0;
  std::vector<double> x;  // row-major
  std::vector<std::uint32_t> labels;
  std::vector<double> y;

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

Data draw(std::size_t n, std::size_t d, std::uint32_t n_classes) {
  Data data{n, d, {}, {}, {}};
  common::Stream stream(5, common::Purpose::rows, n);
  for (std::size_t i = 0; i < n * d; ++i) {
    data.x.push_back(stream.below(20) == 0 ? std::numeric_limits<double>::quiet_NaN()
                                           : std::floor(stream.uniform() * 300));
  }
  for (std::size_t i = 0; i < n; ++i) {
    data.labels.push_back(static_cast<std::uint32_t>(stream.below(n_classes)));
    data.y.push_back(stream.uniform());
  }
  return data;
}

Tree grow(const Data& data, criterion::CriterionKind kind, int n_threads,
          std::int64_t max_leaf_nodes = 0, std::int64_t max_features = 0,
          bool random_splits = false) {
  criterion::Targets targets;
  targets.n_rows = data.n;
  if (criterion::is_classification(kind)) {
    targets.n_classes = {3};
    targets.labels = data.labels.data();
  } else {
    targets.values = data.y.data();
  }
  GrowOptions options;
  options.criterion = kind;
  options.n_threads = n_threads;
  options.max_leaf_nodes = max_leaf_nodes;
  options.max_features = max_features;
  options.random_splits = random_splits;
  options.seed = 3;
  common::Watch watch;
  return grow_tree(data.table(), targets, options, watch);
}

TreeView view(const Tree& tree, std::vector<std::int64_t>& wide) {
  wide.assign(tree.left.begin(), tree.left.end());
  wide.insert(wide.end(), tree.right.begin(), tree.right.end());
  wide.insert(wide.end(), tree.feature.begin(), tree.feature.end());
  const std::size_t n = tree.size();
  return {{wide.data(), n},  {wide.data() + n, n}, {wide.data() + 2 * n, n}, tree.threshold,
          tree.missing_left, tree.category_start,  tree.category_bits};
}

const auto all_kinds = {criterion::CriterionKind::gini,
                        criterion::CriterionKind::entropy,
                        criterion::CriterionKind::misclassification,
                        criterion::CriterionKind::squared_error,
                        criterion::CriterionKind::absolute_error,
                        criterion::CriterionKind::poisson};

}  // namespace

TEST(same_tree_for_any_number_of_threads) {
  const Data data = draw(4000, 8, 3);
  for (const criterion::CriterionKind kind : all_kinds) {
    for (const std::int64_t max_leaf_nodes : {0, 50}) {
      for (const std::int64_t max_features : {0, 3}) {
        for (const bool random_splits : {false, true}) {
          const Tree one = grow(data, kind, 1, max_leaf_nodes, max_features, random_splits);
          const Tree many = grow(data, kind, 5, max_leaf_nodes, max_features, random_splits);
          CHECK(one.left == many.left && one.right == many.right);
          CHECK(one.feature == many.feature && one.threshold == many.threshold);
          CHECK(one.impurity == many.impurity && one.value == many.value);
          CHECK(one.max_depth == many.max_depth);
        }
      }
    }
  }
}

TEST(leaf_sizes_match_the_applied_rows) {
  const Data data = draw(1500, 5, 3);
  for (const criterion::CriterionKind kind : all_kinds) {
    const Tree tree = grow(data, kind, 2);
    std::vector<std::int64_t> wide;
    const Predictor predictor(view(tree, wide));
    std::vector<std::int64_t> leaf(data.n);
    predictor.apply(data.table(), 2, leaf.data());
    std::vector<std::int64_t> count(tree.size());
    for (const std::int64_t node : leaf) ++count[static_cast<std::size_t>(node)];
    std::int64_t total = 0;
    for (std::size_t node = 0; node < tree.size(); ++node) {
      if (tree.left[node] != no_child) {
        CHECK(count[node] == 0);
        continue;
      }
      CHECK(count[node] == tree.n_rows[node]);
      total += count[node];
    }
    CHECK(total == static_cast<std::int64_t>(data.n));
  }
}

TEST(a_tree_without_limits_fits_distinct_rows) {
  Data data = draw(600, 3, 3);
  for (std::size_t i = 0; i < data.n; ++i) data.x[i * 3] = static_cast<double>(i);
  for (const criterion::CriterionKind kind : all_kinds) {
    const Tree tree = grow(data, kind, 1);
    for (std::size_t node = 0; node < tree.size(); ++node) {
      if (tree.left[node] == no_child) CHECK_NEAR(tree.impurity[node], 0.0, 1e-12);
    }
  }
}

TEST(weakest_links_of_a_small_tree) {
  // The root 0 has the children 1 and 2; node 1 has the children 3 and 4.
  const std::vector<std::int64_t> left{1, 3, -1, -1, -1};
  const std::vector<std::int64_t> right{2, 4, -1, -1, -1};
  const std::vector<double> risk{1.0, 0.5, 0.2, 0.2, 0.1};
  const PruningPath path = weakest_links(left, right, risk);
  // First node 1: (0.5 − 0.3)/1 = 0.2; root (1 − 0.5)/2 = 0.25. Then root: (1 − 0.7)/1 = 0.3.
  CHECK(path.alphas.size() == 3);
  CHECK_NEAR(path.alphas[1], 0.2, 1e-15);
  CHECK_NEAR(path.alphas[2], 0.3, 1e-15);
  CHECK_NEAR(path.risks[0], 0.5, 1e-15);
  CHECK_NEAR(path.risks[1], 0.7, 1e-15);
  CHECK_NEAR(path.risks[2], 1.0, 1e-15);
  CHECK_NEAR(path.node_alpha[1], 0.2, 1e-15);
  CHECK_NEAR(path.node_alpha[0], 0.3, 1e-15);
}

TEST(infinity_checks_depend_on_known_finite) {
  Data data = draw(300, 3, 3);
  const Tree tree = grow(data, criterion::CriterionKind::gini, 1);
  std::vector<std::int64_t> wide;
  const Predictor predictor(view(tree, wide));
  std::vector<std::int64_t> leaf(data.n);
  data.x[100] = std::numeric_limits<double>::infinity();
  table::Table table = data.table();
  predictor.apply(table, 1, leaf.data());
  table.known_finite = false;
  bool refused = false;
  try {
    predictor.apply(table, 1, leaf.data());
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  CHECK(refused);
}
