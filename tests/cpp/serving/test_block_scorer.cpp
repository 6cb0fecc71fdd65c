#include "spinney/serving/block_scorer.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "spinney/common/random.h"
#include "spinney/serving/scorers.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::serving;

// The reference scores one row after another.
TEST(block_scorer_matches_the_row_scorer) {
  common::Stream stream(11, common::Purpose::rows, 0);
  constexpr std::size_t d = 4;
  constexpr std::size_t n = 1100;  // two full blocks and a partial one
  std::vector<double> x(n * d);
  for (double& value : x) {
    value = stream.below(10) == 0 ? std::nan("") : std::floor(100 * stream.uniform()) / 100;
  }
  table::Table table;
  table.n_rows = n;
  for (std::size_t f = 0; f < d; ++f) {
    table::Column column;
    column.data = reinterpret_cast<const std::byte*>(x.data() + f);
    column.stride = static_cast<std::ptrdiff_t>(d * sizeof(double));
    table.columns.push_back(column);
  }
  // Different depths; few thresholds per column, and more than 256.
  for (const std::size_t levels : {0, 1, 3, 7, 9, 11}) {
    for (const double n_thresholds : {50.0, 3000.0}) {
      for (const std::size_t n_scores : {std::size_t{1}, std::size_t{3}}) {
        forest::Forest forest;
        forest.n_categories.assign(d, 0);
        for (std::size_t t = 0; t < 12; ++t) {
          forest::CompactTree tree;
          const auto grow = [&](const auto& self, std::size_t level) -> std::int32_t {
            if (level == levels || (level > 1 && stream.below(5) == 0)) {
              tree.leaf_rows.push_back(1);
              tree.values.push_back(stream.uniform());
              return ~static_cast<std::int32_t>(tree.leaf_rows.size() - 1);
            }
            const std::size_t mine = tree.nodes.size();
            auto feature = static_cast<std::uint32_t>(stream.below(d));
            if (stream.below(2) == 0) feature |= forest::CompactNode::missing_left_flag;
            const double threshold = std::floor(n_thresholds * stream.uniform()) / n_thresholds;
            tree.nodes.push_back({static_cast<float>(threshold), feature, {0, 0}});
            for (std::size_t side = 0; side < 2; ++side) {
              const std::int32_t child = self(self, level + 1);
              tree.nodes.edit()[mine].child[side] = child;
            }
            return static_cast<std::int32_t>(mine);
          };
          grow(grow, 0);
          forest.trees.push_back(std::move(tree));
        }
        CHECK(BlockScorer::serves(forest, 0, 12, 100000));
        const std::size_t n_rounds = 12 / n_scores;
        const RowScorer one(forest, std::vector<double>(n_scores, 0.25), n_rounds, Link::identity);
        std::vector<double> together(n * n_scores, 0.25);
        add_rounds(forest, table, n_scores, 0, n_rounds, 2, together.data());
        std::vector<std::vector<double>> in_blocks;
        for (const BlockKernels* const kernels : supported_block_kernels()) {
          const BlockScorer many(forest, 0, 12, *kernels);
          std::vector<double>& out = in_blocks.emplace_back(n * n_scores, 0.25);
          for (std::size_t i = 0; i < n; i += BlockScorer::block_rows) {
            many.add(x.data() + i * d, d, std::min(BlockScorer::block_rows, n - i), n_scores,
                     out.data() + i * n_scores);
          }
        }
        std::vector<double> alone(n_scores);
        for (std::size_t i = 0; i < n; ++i) {
          one.score(x.data() + i * d, alone.data());
          for (std::size_t k = 0; k < n_scores; ++k) {
            CHECK(together[i * n_scores + k] == alone[k]);
            for (const auto& out : in_blocks) CHECK(out[i * n_scores + k] == alone[k]);
          }
        }
      }
    }
  }
}
