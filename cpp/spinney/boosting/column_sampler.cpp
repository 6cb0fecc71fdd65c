#include "spinney/boosting/column_sampler.h"

#include <algorithm>
#include <cmath>

#include "spinney/common/random.h"

namespace spinney::boosting {

void ColumnSampler::start_tree(std::uint64_t number) {
  number_ = number;
  of_tree_.assign(n_features_, 1);
  draw(of_tree_, rules_.max_features_tree, 0);
}

std::vector<std::uint8_t> ColumnSampler::allowed(std::size_t depth, std::uint64_t name,
                                                 const std::vector<std::uint32_t>& path) const {
  if (rules_.interaction_cst.empty() && rules_.max_features_tree >= 1 &&
      rules_.max_features_level >= 1 && rules_.max_features >= 1) {
    return {};
  }
  std::vector<std::uint8_t> columns = of_tree_;
  if (!rules_.interaction_cst.empty()) keep_interactions(columns, path);
  // Streams of levels and nodes differ from that of the tree, 0.
  draw(columns, rules_.max_features_level, 1 + depth);
  draw(columns, rules_.max_features, (std::uint64_t{1} << 63) | name);
  return columns;
}

// Keeps a fraction of the flagged columns, at least one, drawn without replacement.
void ColumnSampler::draw(std::vector<std::uint8_t>& columns, double fraction,
                         std::uint64_t index) const {
  if (fraction >= 1) return;
  std::vector<std::uint32_t> flagged;
  for (std::uint32_t f = 0; f < columns.size(); ++f) {
    if (columns[f] != 0) flagged.push_back(f);
  }
  const auto n = static_cast<std::size_t>(
      std::max(1.0, std::round(fraction * static_cast<double>(flagged.size()))));
  common::Stream stream(common::combine(rules_.seed, number_), common::Purpose::features, index);
  for (std::size_t i = 0; i + 1 < flagged.size() && i < n; ++i) {
    std::swap(flagged[i], flagged[i + stream.below(flagged.size() - i)]);
  }
  std::fill(columns.begin(), columns.end(), std::uint8_t{0});
  for (std::size_t i = 0; i < std::min(n, flagged.size()); ++i) columns[flagged[i]] = 1;
}

// Keeps the columns of those sets that contain all columns of the path.
void ColumnSampler::keep_interactions(std::vector<std::uint8_t>& columns,
                                      const std::vector<std::uint32_t>& path) const {
  std::vector<std::uint8_t> together(n_features_);
  for (const std::vector<std::uint32_t>& set : rules_.interaction_cst) {
    const bool contains_path = std::all_of(path.begin(), path.end(), [&](std::uint32_t f) {
      return std::find(set.begin(), set.end(), f) != set.end();
    });
    if (!contains_path) continue;
    for (const std::uint32_t f : set) together[f] = 1;
  }
  for (std::size_t f = 0; f < together.size(); ++f) columns[f] &= together[f];
}

}  // namespace spinney::boosting
