#include "spinney/ensemble/forest_grower.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "spinney/common/check.h"
#include "spinney/common/parallel.h"
#include "spinney/ensemble/bag.h"
#include "spinney/ensemble/category_order.h"
#include "spinney/ensemble/out_of_bag.h"
#include "spinney/serving/forest_reader.h"
#include "spinney/tree/prune.h"

namespace spinney::ensemble {

using common::parallel_for;
using common::Row;

void ForestOptions::check() const {
  common::require_at_least<std::size_t>("n_trees", n_trees, 1);
  common::require_at_least("n_threads", n_threads, 1);
  common::require_at_least("ccp_alpha", ccp_alpha, 0.0);
}

namespace {

// Weights that give every class of the sample the same total.
void balance(const criterion::Targets& targets, const std::uint32_t* counts, double* weights) {
  for (std::size_t o = 0; o < targets.n_outputs; ++o) {
    const std::uint32_t* labels = targets.labels + o * targets.n_rows;
    std::vector<double> n_of_class(targets.n_classes[o]);
    double n = 0;
    for (std::size_t row = 0; row < targets.n_rows; ++row) {
      n_of_class[labels[row]] += counts[row];
      n += counts[row];
    }
    const auto n_present = static_cast<double>(std::count_if(
        n_of_class.begin(), n_of_class.end(), [](double count) { return count > 0; }));
    for (std::size_t row = 0; row < targets.n_rows; ++row) {
      if (counts[row] > 0) weights[row] *= n / (n_present * n_of_class[labels[row]]);
    }
  }
}

// Rows of leaves that are not pure, each as often as it was drawn.
void keep_members(const std::vector<Row>& rows, const std::uint32_t* counts,
                  forest::CompactTree& tree) {
  if (tree.leaf_impurity.empty()) return;
  Row at = 0;
  for (std::size_t leaf = 0; leaf < tree.n_leaves(); ++leaf) {
    tree.member_start.push_back(static_cast<std::uint32_t>(tree.members.size()));
    const Row end = at + tree.leaf_rows[leaf];
    for (; at < end; ++at) {
      if (tree.leaf_impurity[leaf] == 0) continue;
      const std::uint32_t n = counts == nullptr ? 1 : counts[rows[at]];
      tree.members.append(n, rows[at]);
    }
  }
  tree.member_start.push_back(static_cast<std::uint32_t>(tree.members.size()));
  tree.members.shrink_to_fit();
}

// The tree after cost-complexity pruning.
forest::Tree pruned(const forest::Tree& tree, double alpha,
                    const std::vector<std::int32_t>& n_categories) {
  const std::vector<std::int64_t> left(tree.left.begin(), tree.left.end());
  const std::vector<std::int64_t> right(tree.right.begin(), tree.right.end());
  std::vector<double> risk(tree.size());
  for (std::size_t node = 0; node < tree.size(); ++node) {
    risk[node] = tree.weight[node] * tree.impurity[node] / tree.weight[0];
  }
  const tree::PruningPath path = tree::weakest_links(left, right, risk);
  forest::Tree out;
  out.value_size = tree.value_size;
  struct Visit {
    std::size_t node;
    common::NodeIndex parent;
    bool is_left;
    std::int32_t depth;
  };
  std::vector<Visit> stack{{0, forest::no_child, false, 0}};
  while (!stack.empty()) {
    const Visit visit = stack.back();
    stack.pop_back();
    const bool is_leaf =
        tree.left[visit.node] == forest::no_child || path.node_alpha[visit.node] <= alpha;
    const std::size_t n_words =
        is_leaf || tree.category_start[visit.node] == forest::no_categories
            ? 0
            : forest::words_for(n_categories[static_cast<std::size_t>(tree.feature[visit.node])]);
    const common::NodeIndex index = out.copy_node(tree, visit.node, n_words);
    const auto at = static_cast<std::size_t>(index);
    out.max_depth = std::max(out.max_depth, visit.depth);
    if (visit.parent >= 0) {
      (visit.is_left ? out.left : out.right)[static_cast<std::size_t>(visit.parent)] = index;
    }
    if (is_leaf) {
      out.feature[at] = forest::no_feature;
      out.threshold[at] = -2.0;
      out.missing_left[at] = 0;
      out.category_start[at] = forest::no_categories;
      continue;
    }
    stack.push_back(
        {static_cast<std::size_t>(tree.right[visit.node]), index, false, visit.depth + 1});
    stack.push_back(
        {static_cast<std::size_t>(tree.left[visit.node]), index, true, visit.depth + 1});
  }
  return out;
}

// Some rows of a table, copied: small samples are grown on a table of their own.
struct SmallTable {
  table::Table table;
  std::vector<std::vector<double>> values;
  std::vector<std::vector<std::int32_t>> categories;
  std::vector<double> targets;
  std::vector<double> weights;

  SmallTable(const table::Table& from, const criterion::Targets& all, const std::vector<Row>& rows,
             const std::uint32_t* counts) {
    table.n_rows = rows.size();
    values.resize(from.n_features());
    categories.resize(from.n_features());
    for (std::size_t f = 0; f < from.n_features(); ++f) {
      const table::Column& column = from.columns[f];
      table::Column own;
      own.n_categories = column.n_categories;
      if (column.kind == table::ColumnKind::categorical) {
        for (const Row row : rows) categories[f].push_back(column.category(row));
        own.kind = table::ColumnKind::categorical;
        own.dtype = table::Dtype::int32;
        own.stride = sizeof(std::int32_t);
        own.data = reinterpret_cast<const std::byte*>(categories[f].data());
      } else {
        values[f].resize(rows.size());
        table::gather(column, rows.data(), static_cast<Row>(rows.size()), values[f].data());
        own.stride = sizeof(double);
        own.data = reinterpret_cast<const std::byte*>(values[f].data());
      }
      table.columns.push_back(own);
    }
    for (const Row row : rows) {
      targets.push_back(all.values[row]);
      weights.push_back(static_cast<double>(counts[row]));
    }
  }
};

// One thread's buffers, reused from tree to tree.
struct Sample {
  std::vector<std::uint32_t> counts;
  std::vector<double> weights;
  tree::TreeScratch scratch;
};

}  // namespace

std::vector<std::int64_t> draw_bag(std::size_t n_rows, std::size_t n_drawn, bool replace,
                                   const double* draw_weights, std::uint64_t tree_seed) {
  std::vector<std::int64_t> rows;
  rows.reserve(n_drawn);
  const Bag bag(n_rows, n_drawn, replace, draw_weights);
  std::vector<std::uint32_t> counts(n_rows);
  bag.draw(tree_seed, counts.data(),
           [&](std::size_t row) { rows.push_back(static_cast<std::int64_t>(row)); });
  return rows;
}

void grow_forest(const tree::PreparedTable& prepared, const criterion::Targets& targets,
                 const ForestOptions& options, forest::Forest& forest, OutOfBag& out_of_bag,
                 common::Watch& watch) {
  const std::size_t n_rows = targets.n_rows;
  const Bag bag(n_rows, options.n_drawn, options.replace,
                options.bootstrap ? options.draw_weights : nullptr);
  const std::size_t first = forest.trees.size();
  forest.trees.resize(first + options.n_trees);
  if (prepared.bare && (!options.bootstrap || targets.values == nullptr)) {
    throw common::InputError("a bare table needs bootstrap samples and numeric targets");
  }
  OutOfBagTally tally(prepared.table, targets, forest, options, out_of_bag);
  const auto n_workers = static_cast<std::size_t>(std::max(1, options.n_threads));
  std::vector<Sample> samples(n_workers);
  const bool sampled = options.bootstrap || options.counts != nullptr;

  const auto grow_one = [&](std::size_t index, int worker) {
    Sample& sample = samples[static_cast<std::size_t>(worker)];
    tree::GrowOptions tree_options = options.tree;
    tree_options.seed = seed_of(options, index);
    tree_options.n_threads = 1;
    if (options.features != nullptr) {
      const std::int32_t* list = options.features + index * options.n_features_per_tree;
      tree_options.features.assign(list, list + options.n_features_per_tree);
    }
    criterion::Targets own = targets;
    const std::uint32_t* counts = nullptr;
    if (sampled) {
      if (options.counts != nullptr) {
        counts = options.counts + index * n_rows;
      } else {
        sample.counts.assign(n_rows, 0);
        bag.draw(tree_options.seed, sample.counts.data(), [](std::size_t) {});
        counts = sample.counts.data();
      }
      if (!prepared.bare) sample.weights.assign(counts, counts + n_rows);
      own.integral_weights = true;
      if (options.counts != nullptr && targets.weights != nullptr) {
        for (std::size_t row = 0; row < n_rows; ++row) sample.weights[row] *= targets.weights[row];
        own.integral_weights = targets.integral_weights;
      }
      if (options.balance_classes) {
        balance(targets, counts, sample.weights.data());
        own.integral_weights = false;
      }
      own.weights = prepared.bare ? nullptr : sample.weights.data();
    }
    double total = static_cast<double>(n_rows);
    if (own.weights != nullptr) {
      total = 0;
      for (std::size_t row = 0; row < n_rows; ++row) total += own.weights[row];
    }
    // Products of two such sums are exact.
    own.integral_weights = own.integral_weights && total < 1073741824.0;
    tree_options.min_weight_leaf = options.tree.min_weight_leaf * total;
    if (prepared.bare) {
      std::vector<Row> rows;
      for (std::size_t row = 0; row < n_rows; ++row) {
        if (counts[row] > 0) rows.push_back(static_cast<Row>(row));
      }
      const SmallTable small(prepared.table, targets, rows, counts);
      own = criterion::Targets();
      own.n_rows = rows.size();
      own.values = small.targets.data();
      own.weights = small.weights.data();
      own.integral_weights = true;
      const tree::PreparedTable of_tree(small.table, tree_options.random_splits, 1);
      tree::grow_tree(of_tree, own, tree_options, watch, sample.scratch);
      forest.trees[first + index] =
          forest::compact(sample.scratch.tree, forest.shape, forest.n_categories);
      return;
    }
    std::vector<std::vector<common::Code>> ranks;
    if (!tree_options.random_splits) {
      ranks = order_categories(prepared.table, targets, counts, tree_options.seed);
      tree_options.category_ranks = &ranks;
    }
    tree::grow_tree(prepared, own, tree_options, watch, sample.scratch);
    forest::Tree& grown = sample.scratch.tree;
    if (options.ccp_alpha > 0) grown = pruned(grown, options.ccp_alpha, forest.n_categories);
    forest::CompactTree tree = forest::compact(grown, forest.shape, forest.n_categories);
    if (options.keep_members) keep_members(sample.scratch.rows, counts, tree);
    tally.add(index, grown, tree, counts);
    forest.trees[first + index] = std::move(tree);
  };
  try {
    parallel_for(options.n_trees, options.n_threads, grow_one);
  } catch (...) {
    forest.trees.resize(first);  // as it was
    throw;
  }
}

}  // namespace spinney::ensemble
