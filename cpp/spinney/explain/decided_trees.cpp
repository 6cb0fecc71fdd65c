#include "spinney/explain/decided_trees.h"

#include <array>
#include <map>

#include "spinney/forest/traversal.h"
#include "spinney/serving/block_scorer.h"
#include "spinney/serving/forest_reader.h"

namespace spinney::explain {

namespace {

using Answers = std::array<std::uint64_t, 2>;  // a bit for each question: whether it goes left
constexpr std::size_t max_questions = 64 * std::tuple_size_v<Answers>;

// The tree that is left when the questions at `asked` have these answers.
forest::CompactTree decided(const forest::CompactTree& tree, const std::vector<std::int32_t>& asked,
                            const Answers& answers) {
  forest::CompactTree out;
  out.category_bits = tree.category_bits;
  const auto copy = [&](const auto& self, std::int32_t name) -> std::int32_t {
    while (name >= 0 && asked[static_cast<std::size_t>(name)] >= 0) {
      const auto question = static_cast<std::size_t>(asked[static_cast<std::size_t>(name)]);
      const bool left = ((answers[question / 64] >> (question % 64)) & 1) != 0;
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
  std::vector<std::int32_t> place(sum.forest.n_features(), -1);
  const std::size_t n_set = settings.features.size();
  for (std::size_t f = 0; f < n_set; ++f) {
    place[settings.features[f]] = static_cast<std::int32_t>(f);
  }
  std::vector<double> row(sum.forest.n_features());
  out.run_start.push_back(0);
  for (std::size_t t = 0; t < sum.n_trees; ++t) {
    const forest::CompactTree& tree = sum.forest.trees[t];
    std::vector<std::int32_t> asked(tree.nodes.size(), -1);
    std::vector<std::size_t> questions;
    for (std::size_t at = 0; at < tree.nodes.size(); ++at) {
      if (place[tree.nodes[at].feature_index()] < 0) continue;
      asked[at] = static_cast<std::int32_t>(questions.size());
      questions.push_back(at);
    }
    if (questions.size() > max_questions) return {};
    std::map<Answers, std::vector<DecidedTrees::Run>> ways;
    for (std::size_t s = 0; s < n; ++s) {
      for (std::size_t f = 0; f < n_set; ++f) {
        row[settings.features[f]] = settings.values[(first + s) * n_set + f];
      }
      Answers answers{};
      for (std::size_t q = 0; q < questions.size(); ++q) {
        if (forest::goes_left(tree, questions[q], row[tree.nodes[questions[q]].feature_index()])) {
          answers[q / 64] |= std::uint64_t{1} << (q % 64);
        }
      }
      std::vector<DecidedTrees::Run>& runs = ways[answers];
      const auto here = static_cast<std::uint32_t>(s);
      if (!runs.empty() && runs.back().to == here) {
        ++runs.back().to;
      } else {
        runs.push_back({here, here + 1});
      }
    }
    for (const auto& [answers, runs] : ways) {
      out.forest.trees.push_back(decided(tree, asked, answers));
      out.source.push_back(t);
      out.runs.insert(out.runs.end(), runs.begin(), runs.end());
      out.run_start.push_back(out.runs.size());
    }
    // A walk through a tree is some ten times as dear as a row's part of a block.
    if (out.forest.trees.size() > 10 * (t + 1) + 100) return {};
  }
  if (!serving::BlockScorer::serves(out.forest, 0, out.forest.trees.size(), n_rows)) return {};
  return out;
}

}  // namespace spinney::explain
