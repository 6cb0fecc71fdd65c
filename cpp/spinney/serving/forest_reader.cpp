#include "spinney/serving/forest_reader.h"

#include <algorithm>
#include <array>

#include "spinney/common/check.h"
#include "spinney/common/log.h"
#include "spinney/common/parallel.h"
#include "spinney/forest/traversal.h"
#include "spinney/serving/block_traversal.h"
#include "spinney/table/row_block.h"

namespace spinney::serving {

using common::parallel_for;
using common::worthwhile_threads;

namespace {

constexpr std::size_t n_lanes = 16;  // rows that descend together, to hide the latency of loads

// Features of all splits, ascending.
std::vector<std::uint32_t> used_features(const forest::Forest& forest) {
  std::vector<std::uint8_t> used(forest.n_features());
  for (const forest::CompactTree& tree : forest.trees) {
    for (const forest::CompactNode& node : tree.nodes)
      used[node.feature & forest::CompactNode::feature_mask] = 1;
  }
  std::vector<std::uint32_t> features;
  for (std::size_t f = 0; f < used.size(); ++f) {
    if (used[f] != 0) features.push_back(static_cast<std::uint32_t>(f));
  }
  return features;
}

bool has_categories(const forest::CompactTree& tree) { return !tree.category_bits.empty(); }

// Nodes of a compact tree; `wide`: with thresholds in double precision.
template <bool wide, bool may_miss>
struct CompactLayout {
  using Index = std::int32_t;
  const forest::CompactNode* nodes;
  const double* thresholds;

  explicit CompactLayout(const forest::CompactTree& tree)
      : nodes(tree.nodes.data()), thresholds(tree.thresholds.data()) {}

  template <class Value>
  SPINNEY_INLINE Index next(Index at, const Value* row) const {
    const forest::CompactNode& node = nodes[at];
    const Value value = row[node.feature & forest::CompactNode::feature_mask];
    const std::uint32_t missing_right = ~(node.feature >> 31) & 1U;
    if constexpr (wide) {
      return node.child[forest::numeric_side<may_miss>(static_cast<double>(value), thresholds[at],
                                                       missing_right)];
    } else {
      return node.child[forest::numeric_side<may_miss>(value, static_cast<Value>(node.threshold),
                                                       missing_right)];
    }
  }
  bool is_leaf(Index, Index next) const { return next < 0; }
  std::uint32_t leaf(Index next) const { return static_cast<std::uint32_t>(~next); }
};

// Trees of a few levels: their leaves become nodes that lead to themselves, and every row takes as
// many steps as the tree has levels.
constexpr std::size_t shallow_nodes = 1024;
constexpr std::size_t shallow_depth = 12;

struct ShallowNode {
  float threshold;
  std::uint32_t feature;
  std::uint32_t child[2];
};

template <bool may_miss>
struct ShallowLayout {
  const ShallowNode* nodes;

  template <class Value>
  SPINNEY_INLINE std::uint32_t next(std::uint32_t at, const Value* row) const {
    const ShallowNode& node = nodes[at];
    const auto value = static_cast<double>(row[node.feature & forest::CompactNode::feature_mask]);
    return node.child[forest::numeric_side<may_miss>(value, static_cast<double>(node.threshold),
                                                     ~(node.feature >> 31) & 1U)];
  }
};

// Returns false, without a result, unless the tree is shallow.
template <bool may_miss, class Value>
bool descend_shallow(const forest::CompactTree& tree, const Value* rows, std::size_t stride,
                     std::size_t n, std::uint32_t* leaf) {
  const std::size_t n_nodes = tree.nodes.size();
  if (n_nodes > shallow_nodes || n < 64 || !tree.thresholds.empty()) return false;
  std::array<std::uint8_t, shallow_nodes> depth;
  std::array<ShallowNode, 2 * shallow_nodes + 1> nodes;
  depth[0] = 1;
  std::size_t n_levels = 1;
  for (std::size_t at = 0; at < n_nodes; ++at) {  // parents come before their children
    const forest::CompactNode& node = tree.nodes[at];
    nodes[at] = {node.threshold, node.feature, {}};
    for (std::size_t side = 0; side < 2; ++side) {
      const std::int32_t child = node.child[side];
      if (child >= 0) {
        depth[static_cast<std::size_t>(child)] = static_cast<std::uint8_t>(depth[at] + 1);
        n_levels = std::max<std::size_t>(n_levels, depth[at] + 1U);
        if (n_levels > shallow_depth) return false;
      }
      nodes[at].child[side] =
          child >= 0 ? static_cast<std::uint32_t>(child)
                     : static_cast<std::uint32_t>(n_nodes) + static_cast<std::uint32_t>(~child);
    }
  }
  for (std::size_t at = n_nodes; at < 2 * n_nodes + 1; ++at) {
    const auto self = static_cast<std::uint32_t>(at);
    nodes[at] = {0.0F, 0, {self, self}};
  }
  constexpr std::size_t chunk = 64;
  const ShallowLayout<may_miss> layout{nodes.data()};
  for (std::size_t begin = 0; begin < n; begin += chunk) {
    const std::size_t m = std::min(chunk, n - begin);
    descend_by_level(layout, rows + begin * stride, stride, m, n_levels, leaf + begin);
    for (std::size_t i = begin; i < begin + m; ++i) leaf[i] -= static_cast<std::uint32_t>(n_nodes);
  }
  return true;
}

}  // namespace

template <class Value>
void descend(const forest::CompactTree& tree, const Value* rows, std::size_t stride, std::size_t n,
             bool may_miss, std::uint32_t* leaf) {
  if (tree.nodes.empty()) {
    std::fill(leaf, leaf + n, 0U);
  } else if (has_categories(tree) || n < n_lanes) {
    for (std::size_t i = 0; i < n; ++i) {
      const Value* const row = rows + i * stride;
      leaf[i] = static_cast<std::uint32_t>(forest::find_leaf(
          tree, [row](std::size_t feature) { return static_cast<double>(row[feature]); }));
    }
  } else if (may_miss ? descend_shallow<true>(tree, rows, stride, n, leaf)
                      : descend_shallow<false>(tree, rows, stride, n, leaf)) {
    return;
  } else {
    const auto run = [&]<bool wide, bool any_missing>() {
      descend_in_lanes<n_lanes>(CompactLayout<wide, any_missing>(tree), rows, stride, n, leaf);
    };
    if (tree.thresholds.empty()) {
      may_miss ? run.template operator()<false, true>() : run.template operator()<false, false>();
    } else {
      may_miss ? run.template operator()<true, true>() : run.template operator()<true, false>();
    }
  }
}

template void descend(const forest::CompactTree&, const float*, std::size_t, std::size_t, bool,
                      std::uint32_t*);
template void descend(const forest::CompactTree&, const double*, std::size_t, std::size_t, bool,
                      std::uint32_t*);

namespace {

// Calls body(first, n, rows, stride, may_miss) for blocks of rows.
template <class Body>
void read_blocks(const forest::Forest& forest, const table::Table& table, int n_threads,
                 const Body& body) {
  table::RowReader reader(table, forest.n_categories);
  if (!reader.in_place()) reader.read_only(used_features(forest));
  const std::size_t n_rows = table.n_rows;
  std::size_t depth = 0;
  for (const forest::CompactTree& tree : forest.trees) {
    depth += 2 + static_cast<std::size_t>(table::bits_of(tree.nodes.size()));
  }
  const double work = 3.0 * static_cast<double>(n_rows) * static_cast<double>(depth);
  n_threads = worthwhile_threads(work, n_threads);
  // Enough blocks that no thread waits long for the last one.
  const std::size_t share = n_rows / (4 * static_cast<std::size_t>(n_threads)) + 1;
  const std::size_t block =
      n_threads == 1 ? reader.max_rows() : std::clamp<std::size_t>(share, 8, reader.max_rows());
  parallel_for((n_rows + block - 1) / block, n_threads, [&](std::size_t number, int) {
    const std::size_t first = number * block;
    const std::size_t n = std::min(block, n_rows - first);
    reader.read(first, n, [&](const auto* rows, std::size_t stride, bool may_miss) {
      body(first, n, rows, stride, may_miss);
    });
  });
}

}  // namespace

void visit_leaves(
    const forest::Forest& forest, const table::Table& table, int n_threads,
    const std::function<void(std::size_t, std::size_t, std::size_t, const std::uint32_t*)>& body) {
  read_blocks(
      forest, table, n_threads,
      [&](std::size_t first, std::size_t n, const auto* rows, std::size_t stride, bool may_miss) {
        std::vector<std::uint32_t> leaves(n);
        for (std::size_t t = 0; t < forest.trees.size(); ++t) {
          descend(forest.trees[t], rows, stride, n, may_miss, leaves.data());
          body(first, n, t, leaves.data());
        }
      });
}

void visit_blocks(const forest::Forest& forest, const table::Table& table, int n_threads,
                  const std::function<void(std::size_t, std::size_t, const std::uint32_t*)>& body) {
  read_blocks(
      forest, table, n_threads,
      [&](std::size_t first, std::size_t n, const auto* rows, std::size_t stride, bool may_miss) {
        std::vector<std::uint32_t> leaves(n * forest.trees.size());
        for (std::size_t t = 0; t < forest.trees.size(); ++t) {
          descend(forest.trees[t], rows, stride, n, may_miss, leaves.data() + t * n);
        }
        body(first, n, leaves.data());
      });
}

void apply(const forest::Forest& forest, const table::Table& table, int n_threads,
           std::int64_t* out) {
  const std::size_t n_trees = forest.trees.size();
  // Leaves as nodes of the whole tree, in pre-order.
  std::vector<std::vector<std::int64_t>> node_of(n_trees);
  for (std::size_t t = 0; t < n_trees; ++t) {
    const forest::CompactTree& tree = forest.trees[t];
    node_of[t].resize(tree.n_leaves());
    std::vector<std::int32_t> stack{tree.root()};
    for (std::int64_t index = 0; !stack.empty(); ++index) {
      const std::int32_t name = stack.back();
      stack.pop_back();
      if (name < 0) {
        node_of[t][static_cast<std::size_t>(~name)] = index;
      } else {
        stack.push_back(tree.nodes[static_cast<std::size_t>(name)].child[1]);
        stack.push_back(tree.nodes[static_cast<std::size_t>(name)].child[0]);
      }
    }
  }
  visit_leaves(forest, table, n_threads,
               [&](std::size_t first, std::size_t n, std::size_t t, const std::uint32_t* leaves) {
                 for (std::size_t i = 0; i < n; ++i) {
                   out[(first + i) * n_trees + t] = node_of[t][leaves[i]];
                 }
               });
}

void sum_moments(const forest::Forest& forest, const table::Table& table, const double* centre,
                 int n_threads, double* sums, double* squares) {
  const std::size_t width = forest.shape.width();
  std::fill(sums, sums + table.n_rows * width, 0.0);
  std::fill(squares, squares + table.n_rows * width, 0.0);
  visit_leaves(forest, table, n_threads,
               [&](std::size_t first, std::size_t n, std::size_t t, const std::uint32_t* leaves) {
                 const forest::CompactTree& tree = forest.trees[t];
                 for (std::size_t i = 0; i < n; ++i) {
                   for (std::size_t o = 0; o < width; ++o) {
                     const double value = tree.values[leaves[i] * width + o];
                     sums[(first + i) * width + o] += value;
                     squares[(first + i) * width + o] += (value - centre[o]) * (value - centre[o]);
                   }
                 }
               });
}

double mean_path_length(double n) {
  if (n <= 1) return 0;
  if (n == 2) return 1;
  constexpr double euler = 0.57721566490153286;
  return 2 * (common::log(n - 1) + euler) - 2 * (n - 1) / n;
}

void sum_path_lengths(const forest::Forest& forest, const table::Table& table, int n_threads,
                      double* sums) {
  std::vector<std::vector<double>> length_of(forest.trees.size());
  for (std::size_t t = 0; t < forest.trees.size(); ++t) {
    const forest::CompactTree& tree = forest.trees[t];
    length_of[t].resize(tree.n_leaves());
    struct Visit {
      std::int32_t name;
      std::int32_t depth;
    };
    std::vector<Visit> stack{{tree.root(), 0}};
    while (!stack.empty()) {
      const Visit visit = stack.back();
      stack.pop_back();
      if (visit.name < 0) {
        const auto leaf = static_cast<std::size_t>(~visit.name);
        length_of[t][leaf] = static_cast<double>(visit.depth) +
                             mean_path_length(static_cast<double>(tree.leaf_rows[leaf]));
      } else {
        const forest::CompactNode& node = tree.nodes[static_cast<std::size_t>(visit.name)];
        stack.push_back({node.child[1], visit.depth + 1});
        stack.push_back({node.child[0], visit.depth + 1});
      }
    }
  }
  std::fill(sums, sums + table.n_rows, 0.0);
  visit_leaves(forest, table, n_threads,
               [&](std::size_t first, std::size_t n, std::size_t t, const std::uint32_t* leaves) {
                 const std::vector<double>& lengths = length_of[t];
                 for (std::size_t i = 0; i < n; ++i) sums[first + i] += lengths[leaves[i]];
               });
}

void impurity_importances(const forest::Forest& forest, int n_threads, double* out) {
  const std::size_t n_features = forest.n_features();
  parallel_for(forest.trees.size(), n_threads, [&](std::size_t t, int) {
    const forest::Tree tree = forest::expand(forest.trees[t], forest.shape, forest.n_categories);
    double* const of_tree = out + t * n_features;
    std::fill(of_tree, of_tree + n_features, 0.0);
    double total = 0;
    for (std::size_t node = 0; node < tree.size(); ++node) {
      if (tree.left[node] == forest::no_child) continue;
      const auto left = static_cast<std::size_t>(tree.left[node]);
      const auto right = static_cast<std::size_t>(tree.right[node]);
      const double decrease = tree.weight[node] * tree.impurity[node] -
                              tree.weight[left] * tree.impurity[left] -
                              tree.weight[right] * tree.impurity[right];
      of_tree[tree.feature[node]] += decrease;
      total += decrease;
    }
    for (std::size_t f = 0; f < n_features && total > 0; ++f) of_tree[f] /= total;
  });
}

void add_leaf(const forest::CompactTree& tree, const forest::LeafShape& shape, bool hard_vote,
              std::size_t leaf, double* out) {
  const std::size_t width = shape.width();
  if (shape.one_label()) {
    const std::uint32_t label = tree.leaf_class[leaf];
    if (label < width) {
      out[label] += 1.0;
      return;
    }
    const std::size_t start = (label - width) * width;
    if (!tree.mixed_counts.empty()) {
      const float* counts = tree.mixed_counts.data() + start;
      if (hard_vote) {
        out[std::max_element(counts, counts + width) - counts] += 1.0;
        return;
      }
      const double weight = tree.weight_of(leaf);
      for (std::size_t k = 0; k < width; ++k) out[k] += static_cast<double>(counts[k]) / weight;
      return;
    }
    const double* values = tree.values.data() + start;
    if (hard_vote) {
      out[std::max_element(values, values + width) - values] += 1.0;
      return;
    }
    for (std::size_t k = 0; k < width; ++k) out[k] += values[k];
    return;
  }
  const double* values = tree.values.data() + leaf * width;
  if (hard_vote) {
    const std::size_t stride = width / shape.n_outputs;
    for (std::size_t o = 0; o < shape.n_outputs; ++o) {
      const double* of_output = values + o * stride;
      out[o * stride +
          static_cast<std::size_t>(std::max_element(of_output, of_output + shape.n_classes[o]) -
                                   of_output)] += 1.0;
    }
    return;
  }
  for (std::size_t k = 0; k < width; ++k) out[k] += values[k];
}

void sum_predictions(const forest::Forest& forest, const table::Table& table, bool hard_votes,
                     int n_threads, double* out) {
  const forest::LeafShape& shape = forest.shape;
  const std::size_t width = shape.width();
  std::fill(out, out + table.n_rows * width, 0.0);
  visit_leaves(forest, table, n_threads,
               [&](std::size_t first, std::size_t n, std::size_t t, const std::uint32_t* leaves) {
                 const forest::CompactTree& tree = forest.trees[t];
                 double* to = out + first * width;
                 if (shape.one_label() && tree.mixed_counts.empty() && tree.values.empty()) {
                   const std::uint32_t* const labels = tree.leaf_class.data();  // all are pure
                   for (std::size_t i = 0; i < n; ++i, to += width) to[labels[leaves[i]]] += 1.0;
                   return;
                 }
                 if (width == 1 && !shape.one_label()) {
                   for (std::size_t i = 0; i < n; ++i) to[i] += tree.values[leaves[i]];
                   return;
                 }
                 for (std::size_t i = 0; i < n; ++i, to += width) {
                   add_leaf(tree, shape, hard_votes, leaves[i], to);
                 }
               });
}

}  // namespace spinney::serving
