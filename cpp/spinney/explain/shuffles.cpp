#include "spinney/explain/shuffles.h"

#include <algorithm>
#include <cmath>

#include "spinney/common/check.h"
#include "spinney/common/parallel.h"
#include "spinney/forest/traversal.h"
#include "spinney/serving/forest_reader.h"

namespace spinney::explain {

using common::parallel_for;

namespace {

constexpr std::size_t block_rows = 64;
constexpr std::size_t in_flight = 8;  // shuffles that walk side by side, to hide the loads' latency

// The rows as the trees read them: unknown categories are missing values.
std::vector<double> read_values(const TreeSum& sum, const table::Table& table, int n_threads) {
  const std::size_t n_features = table.n_features();
  std::vector<double> values(table.n_rows * n_features);
  const std::size_t n_blocks = (table.n_rows + block_rows - 1) / block_rows;
  parallel_for(n_blocks, n_threads, [&](std::size_t block, int) {
    const std::size_t end = std::min(table.n_rows, (block + 1) * block_rows);
    for (std::size_t f = 0; f < n_features; ++f) {
      const std::int32_t n_categories = sum.forest.n_categories[f];
      for (std::size_t row = block * block_rows; row < end; ++row) {
        double value = table.columns[f].value(row);
        if (n_categories > 0 && !(value >= 0 && value < static_cast<double>(n_categories))) {
          value = std::nan("");
        }
        values[row * n_features + f] = value;
      }
    }
  });
  return values;
}

class ShuffledWalk {
 public:
  ShuffledWalk(const TreeSum& sum, const Shuffles& shuffles, const std::vector<double>& values,
               std::size_t n_rows)
      : sum_(sum),
        shuffles_(shuffles),
        values_(values),
        n_rows_(n_rows),
        n_features_(sum.forest.n_features()),
        n_settings_(shuffles.groups.size() * shuffles.n_repeats),
        seen_(shuffles.groups.size(), 0),
        own_(sum.forest.shape.width()),
        other_(sum.forest.shape.width()) {
    of_feature_.resize(n_features_);
    for (std::size_t g = 0; g < shuffles.groups.size(); ++g) {
      for (const std::uint32_t feature : shuffles.groups[g]) {
        of_feature_[feature].push_back(static_cast<std::uint32_t>(g));
      }
    }
  }

  // out: of this row.
  void add(std::size_t t, std::size_t row, double* out) {
    const forest::CompactTree& tree = sum_.forest.trees[t];
    const double* const x = values_.data() + row * n_features_;
    ++stamp_;
    met_.clear();
    std::int32_t at = tree.root();
    while (at >= 0) {
      const auto node = static_cast<std::size_t>(at);
      const std::uint32_t feature = static_cast<std::uint32_t>(tree.nodes[node].feature_index());
      for (const std::uint32_t g : of_feature_[feature]) {
        if (seen_[g] == stamp_) continue;
        seen_[g] = stamp_;
        met_.push_back({g, at});
      }
      at = forest::child_of(tree, node, x[feature]);
    }
    const auto own = static_cast<std::uint32_t>(~at);
    std::fill(own_.begin(), own_.end(), 0.0);
    serving::add_leaf(tree, sum_.forest.shape, sum_.hard_votes, own, own_.data());
    changed_.clear();
    for (const Met& met : met_) walk(tree, met, row, x, own);
    // Each setting adds its leaf once, in the order of the trees, as predictions do.
    for (std::size_t k = 0; k < own_.size(); ++k) {
      double* const to = out + (sum_.one_each ? t % sum_.n_scores : k) * n_settings_;
      kept_.clear();
      for (const Changed& changed : changed_) kept_.push_back(to[changed.setting]);
      for (std::size_t s = 0; s < n_settings_; ++s) to[s] += own_[k];
      for (std::size_t i = 0; i < changed_.size(); ++i) {
        std::fill(other_.begin(), other_.end(), 0.0);
        serving::add_leaf(tree, sum_.forest.shape, sum_.hard_votes, changed_[i].leaf,
                          other_.data());
        to[changed_[i].setting] = kept_[i] + other_[k];
      }
    }
  }

 private:
  struct Met {
    std::uint32_t group;
    std::int32_t node;  // the first on the row's path that splits on the group
  };
  struct Changed {
    std::size_t setting;
    std::uint32_t leaf;
  };

  void walk(const forest::CompactTree& tree, const Met& met, std::size_t row, const double* x,
            std::uint32_t own) {
    const std::vector<std::uint32_t>& group = shuffles_.groups[met.group];
    const std::size_t n = shuffles_.n_repeats;
    for (std::size_t first = 0; first < n; first += in_flight) {
      const std::size_t m = std::min(in_flight, n - first);
      std::int32_t at[in_flight];
      const double* other[in_flight];
      for (std::size_t i = 0; i < m; ++i) {
        at[i] = met.node;
        const auto from = static_cast<std::size_t>(shuffles_.orders[(first + i) * n_rows_ + row]);
        other[i] = values_.data() + from * n_features_;
      }
      bool moving = true;
      while (moving) {
        moving = false;
        for (std::size_t i = 0; i < m; ++i) {
          if (at[i] < 0) continue;
          const auto node = static_cast<std::size_t>(at[i]);
          const std::uint32_t feature =
              static_cast<std::uint32_t>(tree.nodes[node].feature_index());
          const bool shuffled = group.size() == 1
                                    ? feature == group[0]
                                    : std::find(group.begin(), group.end(), feature) != group.end();
          at[i] = forest::child_of(tree, node, (shuffled ? other[i] : x)[feature]);
          moving |= at[i] >= 0;
        }
      }
      for (std::size_t i = 0; i < m; ++i) {
        const auto leaf = static_cast<std::uint32_t>(~at[i]);
        if (leaf != own) changed_.push_back({met.group * n + first + i, leaf});
      }
    }
  }

  const TreeSum& sum_;
  const Shuffles& shuffles_;
  const std::vector<double>& values_;
  std::size_t n_rows_;
  std::size_t n_features_;
  std::size_t n_settings_;
  std::vector<std::vector<std::uint32_t>> of_feature_;  // the groups that have it
  std::vector<std::uint64_t> seen_;                     // by group: when it was met last
  std::uint64_t stamp_ = 0;
  std::vector<Met> met_;
  std::vector<Changed> changed_;
  std::vector<double> kept_;
  std::vector<double> own_;
  std::vector<double> other_;
};

}  // namespace

void score_shuffles(const TreeSum& sum, const table::Table& table, const Shuffles& shuffles,
                    int n_threads, double* out) {
  if (sum.n_trees > sum.forest.trees.size()) throw common::InputError("a forest has fewer trees");
  if (table.n_features() != sum.forest.n_features()) {
    throw common::InputError("a table has other columns than the trees know");
  }
  const std::size_t width = sum.forest.shape.width();
  if (sum.n_scores == 0 || (sum.one_each ? width != 1 : width != sum.n_scores)) {
    throw common::InputError("a forest's leaves hold other scores than requested");
  }
  for (const std::vector<std::uint32_t>& group : shuffles.groups) {
    for (const std::uint32_t feature : group) {
      if (feature >= table.n_features()) throw common::InputError("a column is not there");
    }
  }
  for (std::size_t i = 0; i < shuffles.n_repeats * table.n_rows; ++i) {
    if (shuffles.orders[i] < 0 || static_cast<std::size_t>(shuffles.orders[i]) >= table.n_rows) {
      throw common::InputError("an order names a row that is not there");
    }
  }
  const std::vector<double> values = read_values(sum, table, n_threads);
  const std::size_t per_row = sum.n_scores * shuffles.groups.size() * shuffles.n_repeats;
  const std::size_t n_blocks = (table.n_rows + block_rows - 1) / block_rows;
  parallel_for(n_blocks, n_threads, [&](std::size_t block, int) {
    ShuffledWalk walk(sum, shuffles, values, table.n_rows);
    const std::size_t end = std::min(table.n_rows, (block + 1) * block_rows);
    for (std::size_t t = 0; t < sum.n_trees; ++t) {
      for (std::size_t row = block * block_rows; row < end; ++row) {
        walk.add(t, row, out + row * per_row);
      }
    }
  });
}

}  // namespace spinney::explain
