#include "spinney/explain/decided_trees.h"

#include <array>
#include <map>

#include "spinney/forest/traversal.h"
#include "spinney/serving/block_scorer.h"
#include "spinney/serving/forest_reader.h"

namespace spinney::explain {

namespace {

using Sides = std::array<std::uint64_t, 2>;  // bit i: split i goes left
constexpr std::size_t max_splits = 64 * std::tuple_size_v<Sides>;

// The tree without the splits in `split_of`, whose sides are decided.
forest::CompactTree decided(const forest::CompactTree& tree,
                            const std::vector<std::int32_t>& split_of, const Sides& sides) {
  forest::CompactTree out;
  out.category_bits = tree.category_bits;
  const auto copy = [&](const auto& self, std::int32_t name) -> std::int32_t {
    while (name >= 0 && split_of[static_cast<std::size_t>(name)] >= 0) {
      const auto split = static_cast<std::size_t>(split_of[static_cast<std::size_t>(name)]);
      const bool left = ((sides[split / 64] >> (split % 64)) & 1) != 0;
      name = tree.nodes[static_cast<std::size_t>(name)].child[left ? 0 : 1];
    }
    if (name < 0) {
      out.values.push_back(tree.values[static_cast<std::size_t>(~name)]);
      out.leaf_rows.push_back(1);
      return ~static_cast<std::int32_t>(out.values.size() - 1);
    }
    const auto from = static_cast<std::size_t>(name);
    const std::size_t at = out.nodes.size();
    out.nodes.push_back(tree.nodes[from]);
    if (!tree.thresholds.empty()) out.thresholds.push_back(tree.thresholds[from]);
    const std::int32_t left = self(self, tree.nodes[from].child[0]);
    const std::int32_t right = self(self, tree.nodes[from].child[1]);
    forest::CompactNode& node = out.nodes.edit()[at];
    node.child[0] = left;
    node.child[1] = right;
    return static_cast<std::int32_t>(at);
  };
  copy(copy, tree.root());
  return out;
}

}  // namespace

DecidedTrees decide_trees(const TreeSum& sum, const Settings& settings, std::size_t first,
                          std::size_t n, std::size_t n_rows) {
  DecidedTrees out;
  if (sum.forest.shape.width() > 1 || criterion::is_classification(sum.forest.shape.criterion)) {
    return {};
  }
  out.forest.shape = sum.forest.shape;
  out.forest.n_categories = sum.forest.n_categories;
  std::vector<std::int32_t> position(sum.forest.n_features(), -1);
  const std::size_t n_set = settings.features.size();
  for (std::size_t f = 0; f < n_set; ++f) {
    position[settings.features[f]] = static_cast<std::int32_t>(f);
  }
  std::vector<double> row(sum.forest.n_features());
  out.run_start.push_back(0);
  for (std::size_t t = 0; t < sum.n_trees; ++t) {
    const forest::CompactTree& tree = sum.forest.trees[t];
    std::vector<std::int32_t> split_of(tree.nodes.size(), -1);
    std::vector<std::size_t> splits;
    for (std::size_t at = 0; at < tree.nodes.size(); ++at) {
      if (position[tree.nodes[at].feature_index()] < 0) continue;
      split_of[at] = static_cast<std::int32_t>(splits.size());
      splits.push_back(at);
    }
    if (splits.size() > max_splits) return {};
    std::map<Sides, std::vector<DecidedTrees::Run>> ways;
    for (std::size_t s = 0; s < n; ++s) {
      for (std::size_t f = 0; f < n_set; ++f) {
        row[settings.features[f]] = settings.values[(first + s) * n_set + f];
      }
      Sides sides{};
      for (std::size_t q = 0; q < splits.size(); ++q) {
        if (forest::goes_left(tree, splits[q], row[tree.nodes[splits[q]].feature_index()])) {
          sides[q / 64] |= std::uint64_t{1} << (q % 64);
        }
      }
      std::vector<DecidedTrees::Run>& runs = ways[sides];
      const auto here = static_cast<std::uint32_t>(s);
      if (!runs.empty() && runs.back().to == here) {
        ++runs.back().to;
      } else {
        runs.push_back({here, here + 1});
      }
    }
    for (const auto& [sides, runs] : ways) {
      out.forest.trees.push_back(decided(tree, split_of, sides));
      out.source.push_back(t);
      out.runs.insert(out.runs.end(), runs.begin(), runs.end());
      out.run_start.push_back(out.runs.size());
    }
    // A descent of a tree costs about ten times as much as a row in a block.
    if (out.forest.trees.size() > 10 * (t + 1) + 100) return {};
  }
  if (!serving::BlockScorer::serves(out.forest, 0, out.forest.trees.size(), n_rows)) return {};
  return out;
}

}  // namespace spinney::explain
