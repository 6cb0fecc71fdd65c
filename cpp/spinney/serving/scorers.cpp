#include "spinney/serving/scorers.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "spinney/common/exp.h"
#include "spinney/common/parallel.h"
#include "spinney/forest/traversal.h"
#include "spinney/serving/block_scorer.h"
#include "spinney/serving/forest_reader.h"
#include "spinney/table/row_block.h"

namespace spinney::serving {

using common::parallel_for;
using common::worthwhile_threads;

RowScorer::RowScorer(const forest::Forest& forest, std::vector<double> baseline,
                     std::size_t n_rounds, Link link)
    : forest_(forest), baseline_(std::move(baseline)), n_rounds_(n_rounds), link_(link) {
  for (std::size_t f = 0; f < forest.n_features(); ++f) {
    if (forest.n_categories[f] > 0) categorical_.push_back(f);
  }
}

std::size_t RowScorer::n_out() const {
  return link_ == Link::logistic || link_ == Link::twice_logistic ? 2 : baseline_.size();
}

void RowScorer::score(const double* row, double* out) const {
  if (categorical_.empty()) return score_known(row, out);
  // An unknown code counts as missing.
  std::vector<double> known(row, row + n_features());
  for (const std::size_t f : categorical_) {
    const auto beyond = static_cast<double>(forest_.n_categories[f]);
    if (!(known[f] >= 0 && known[f] < beyond)) known[f] = std::numeric_limits<double>::quiet_NaN();
  }
  score_known(known.data(), out);
}

void RowScorer::score_known(const double* row, double* out) const {
  const std::size_t n_scores = baseline_.size();
  std::copy(baseline_.begin(), baseline_.end(), out);
  const std::size_t width = forest_.shape.width();
  const std::size_t n_trees = n_rounds_ * (width > 1 ? 1 : n_scores);
  for (std::size_t t = 0, k = 0; t < n_trees; ++t) {
    const forest::CompactTree& tree = forest_.trees[t];
    const std::size_t leaf =
        forest::find_leaf(tree, [row](std::size_t feature) { return row[feature]; });
    if (width > 1) {
      for (std::size_t j = 0; j < width; ++j) {
        out[j] += tree.values[leaf * width + j];
      }
      continue;
    }
    out[k] += tree.values[leaf];
    if (++k == n_scores) k = 0;
  }
  switch (link_) {
    case Link::exponential:
      out[0] = common::exp(out[0]);
      break;
    case Link::probability:
      out[0] = 1.0 / (1.0 + common::exp(-out[0]));
      break;
    case Link::twice_logistic:
    case Link::logistic: {
      const double odds = link_ == Link::logistic ? out[0] : 2 * out[0];
      out[0] = 1.0 / (1.0 + common::exp(odds));
      out[1] = 1.0 / (1.0 + common::exp(-odds));
      break;
    }
    case Link::softmax: {
      const double top = *std::max_element(out, out + n_scores);
      double total = 0;
      for (std::size_t k = 0; k < n_scores; ++k) total += out[k] = common::exp(out[k] - top);
      for (std::size_t k = 0; k < n_scores; ++k) out[k] /= total;
      break;
    }
    default:
      break;
  }
}

void add_rounds(const forest::Forest& forest, const table::Table& table, std::size_t n_scores,
                std::size_t first, std::size_t last, int n_threads, double* out) {
  const table::RowReader reader(table, forest.n_categories);
  const std::size_t n_rows = table.n_rows;
  const std::size_t width = forest.shape.width();
  const std::size_t n_trees = (last - first) * n_scores;
  const std::size_t first_tree = first * n_scores;
  const std::size_t last_tree = last * n_scores;
  std::optional<BlockScorer> scorer;
  if (BlockScorer::serves(forest, first_tree, last_tree, n_rows)) {
    scorer.emplace(forest, first_tree, last_tree);
    if (!scorer->is_faster()) scorer.reset();
  }
  const bool together = scorer.has_value();
  const double work = (together ? 2.0 : 15.0) * static_cast<double>(n_rows * n_trees);
  const int threads = worthwhile_threads(work, n_threads);
  const std::size_t share = n_rows / (4 * static_cast<std::size_t>(threads)) + 1;
  const std::size_t most = together ? BlockScorer::block_rows : std::size_t{2048};
  const std::size_t block =
      std::clamp<std::size_t>(share, 8, std::min<std::size_t>(most, reader.max_rows()));
  const auto by_blocks_of_rows = [&](const auto& body) {
    parallel_for((n_rows + block - 1) / block, threads, [&](std::size_t number, int) {
      const std::size_t begin = number * block;
      const std::size_t n = std::min(block, n_rows - begin);
      reader.read(begin, n, [&](const auto* values, std::size_t stride, bool may_miss) {
        body(values, stride, n, may_miss, out + begin * n_scores * width);
      });
    });
  };
  if (together) {
    by_blocks_of_rows([&](const auto* values, std::size_t stride, std::size_t n, bool, double* to) {
      scorer->add(values, stride, n, n_scores, to);
    });
    return;
  }
  by_blocks_of_rows(
      [&](const auto* values, std::size_t stride, std::size_t n, bool may_miss, double* to) {
        std::vector<std::uint32_t> leaves(n);
        for (std::size_t t = first_tree; t < last_tree; ++t) {
          const forest::CompactTree& tree = forest.trees[t];
          descend(tree, values, stride, n, may_miss, leaves.data());
          if (width > 1) {
            for (std::size_t i = 0; i < n; ++i) {
              for (std::size_t k = 0; k < width; ++k) {
                to[i * width + k] += tree.values[leaves[i] * width + k];
              }
            }
            continue;
          }
          double* const score = to + t % n_scores;
          for (std::size_t i = 0; i < n; ++i) score[i * n_scores] += tree.values[leaves[i]];
        }
      });
}

}  // namespace spinney::serving
