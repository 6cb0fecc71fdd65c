#include "spinney/explain/dependence.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "spinney/common/check.h"
#include "spinney/common/dispatch.h"
#include "spinney/common/parallel.h"
#include "spinney/explain/decided_trees.h"
#include "spinney/forest/traversal.h"
#include "spinney/serving/block_scorer.h"
#include "spinney/serving/forest_reader.h"
#include "spinney/table/row_block.h"

namespace spinney::explain {

using common::parallel_for;

namespace {

constexpr std::size_t in_flight = 8;           // walks side by side, to hide the latency of loads
constexpr std::size_t block_rows = 512;        // sums over rows are made block by block
constexpr std::size_t group_nodes = 1U << 21;  // of trees that are prepared together
constexpr std::uint32_t not_set = 0xffffffff;

template <std::size_t words>
using Mask = std::array<std::uint64_t, words>;

template <std::size_t words>
bool is_empty(const Mask<words>& mask) {
  std::uint64_t any = 0;
  for (const std::uint64_t word : mask) any |= word;
  return any == 0;
}

// The first index from `from` on whose bit is `bit`; 64 * words if there is none.
template <bool bit, std::size_t words>
std::size_t find(const Mask<words>& mask, std::size_t from) {
  for (std::size_t word = from / 64; word < words; ++word, from = 64 * word) {
    const std::uint64_t bits = (bit ? mask[word] : ~mask[word]) >> (from % 64);
    if (bits != 0) return from + static_cast<std::size_t>(std::countr_zero(bits));
  }
  return 64 * words;
}

// A split on a column that is not set. Negative children are events: ~child is a leaf, or, from
// n_leaves on, a split on a set column.
struct FreeSplit {
  double threshold;
  std::uint32_t feature;  // with CompactNode's flags
  std::int32_t child[2];
};

template <std::size_t words>
struct Fork {  // a split on a set column
  Mask<words> left;
  std::int32_t child[2];
};

template <std::size_t words>
struct Prepared {
  const forest::CompactTree* tree = nullptr;
  std::size_t score = 0;  // that it adds to, if it adds to one
  std::int32_t root = 0;
  std::int32_t n_leaves = 0;
  std::vector<FreeSplit> splits;
  std::vector<Fork<words>> forks;
};

template <std::size_t words>
void prepare(const TreeSum& sum, std::size_t t, const Settings& settings, std::size_t first,
             std::size_t n, const std::vector<std::uint32_t>& position, Prepared<words>& out) {
  const forest::CompactTree& tree = sum.forest.trees[t];
  out.tree = &tree;
  out.score = t % sum.n_scores;
  out.n_leaves = static_cast<std::int32_t>(tree.n_leaves());
  out.splits.clear();
  out.forks.clear();
  const std::size_t n_nodes = tree.nodes.size();
  std::vector<std::int32_t> index(n_nodes);  // what a child that was a node becomes
  std::int32_t n_splits = 0;
  std::int32_t n_forks = 0;
  for (std::size_t at = 0; at < n_nodes; ++at) {
    const std::uint32_t feature = tree.nodes[at].feature & forest::CompactNode::feature_mask;
    index[at] = position[feature] == not_set ? n_splits++ : ~(out.n_leaves + n_forks++);
  }
  const auto renamed = [&](std::int32_t child) {
    return child < 0 ? child : index[static_cast<std::size_t>(child)];
  };
  out.root = n_nodes == 0 ? ~0 : index[0];
  out.splits.reserve(static_cast<std::size_t>(n_splits));
  out.forks.reserve(static_cast<std::size_t>(n_forks));
  std::vector<double> row(sum.forest.n_features());
  for (std::size_t at = 0; at < n_nodes; ++at) {
    const forest::CompactNode& node = tree.nodes[at];
    const std::uint32_t feature = node.feature & forest::CompactNode::feature_mask;
    const std::int32_t left = renamed(node.child[0]);
    const std::int32_t right = renamed(node.child[1]);
    if (index[at] >= 0) {
      const double threshold =
          (node.feature & forest::CompactNode::categorical_flag) != 0
              ? static_cast<double>(std::bit_cast<std::uint32_t>(node.threshold))
              : tree.threshold_of(at);
      out.splits.push_back({threshold, node.feature, {left, right}});
      continue;
    }
    Fork<words> fork{{}, {left, right}};
    for (std::size_t s = 0; s < n; ++s) {
      row[feature] = settings.values[(first + s) * settings.features.size() + position[feature]];
      if (forest::goes_left(tree, at, row[feature])) {
        fork.left[s / 64] |= std::uint64_t{1} << (s % 64);
      }
    }
    out.forks.push_back(fork);
  }
}

template <class Value>
SPINNEY_INLINE std::int32_t next(const forest::CompactTree& tree, const FreeSplit& split,
                                 const Value* row) {
  const auto value = static_cast<double>(row[split.feature & forest::CompactNode::feature_mask]);
  const std::uint32_t missing_right = ~(split.feature >> 31) & 1U;
  if ((split.feature & forest::CompactNode::categorical_flag) != 0) [[unlikely]] {
    const std::uint32_t* const categories =
        tree.category_bits.data() + static_cast<std::size_t>(split.threshold);
    return split.child[forest::goes_left(value, 0, missing_right == 0, categories) ? 0 : 1];
  }
  const std::uint32_t right = forest::numeric_side<true>(value, split.threshold, missing_right);
  return split.child[right];
}

// Calls reach(row, leaf, mask) for every leaf that rows can reach.
template <std::size_t words, class Value, class Reach>
void walk(const Prepared<words>& prepared, const Value* rows, std::size_t stride, std::size_t n,
          const Mask<words>& all, const Reach& reach) {
  struct PartialPath {
    std::int32_t at;
    std::uint32_t row;
    Mask<words> mask;
  };
  std::vector<PartialPath> waiting;  // sides that were not taken
  std::array<PartialPath, in_flight> lanes;
  std::size_t n_started = 0;
  std::size_t n_lanes = 0;
  // Follows events until the lane is at a split again; false if no work remains.
  const auto settle = [&](PartialPath& lane) {
    for (;;) {
      while (lane.at < 0) {
        const std::int32_t event = ~lane.at;
        if (event < prepared.n_leaves) {
          reach(lane.row, static_cast<std::size_t>(event), lane.mask);
          if (!waiting.empty()) {
            lane = waiting.back();
            waiting.pop_back();
            continue;
          }
          if (n_started == n) return false;
          lane = {prepared.root, static_cast<std::uint32_t>(n_started++), all};
          continue;
        }
        const Fork<words>& fork =
            prepared.forks[static_cast<std::size_t>(event - prepared.n_leaves)];
        Mask<words> left;
        Mask<words> right;
        for (std::size_t w = 0; w < words; ++w) {
          left[w] = lane.mask[w] & fork.left[w];
          right[w] = lane.mask[w] & ~fork.left[w];
        }
        if (is_empty(left)) {
          lane.at = fork.child[1];
        } else {
          lane.at = fork.child[0];
          lane.mask = left;
          if (!is_empty(right)) waiting.push_back({fork.child[1], lane.row, right});
        }
      }
      return true;
    }
  };
  while (n_lanes < in_flight && (n_started < n || !waiting.empty())) {
    PartialPath lane;
    if (waiting.empty()) {
      lane = {prepared.root, static_cast<std::uint32_t>(n_started++), all};
    } else {
      lane = waiting.back();
      waiting.pop_back();
    }
    if (settle(lane)) lanes[n_lanes++] = lane;
  }
  const FreeSplit* const splits = prepared.splits.data();
  while (n_lanes == in_flight) {
    SPINNEY_UNROLL(8)
    for (std::size_t i = 0; i < in_flight; ++i) {
      PartialPath& lane = lanes[i];
      lane.at = next(*prepared.tree, splits[lane.at], rows + lane.row * stride);
    }
    for (std::size_t i = 0; i < n_lanes;) {
      if (lanes[i].at >= 0 || settle(lanes[i])) {
        ++i;
      } else {
        lanes[i] = lanes[--n_lanes];
      }
    }
  }
  for (std::size_t i = 0; i < n_lanes; ++i) {
    do {
      while (lanes[i].at >= 0) {
        lanes[i].at = next(*prepared.tree, splits[lanes[i].at], rows + lanes[i].row * stride);
      }
    } while (settle(lanes[i]));
  }
}

// Differences from setting to setting, which `finish` sums up.
template <std::size_t words>
class Steps {
 public:
  Steps(const TreeSum& sum, std::size_t n)
      : sum_(sum), n_(n), n_scores_(sum.n_scores), leaf_(sum.forest.shape.width()) {}

  std::size_t size() const { return (n_ + 1) * n_scores_; }

  SPINNEY_INLINE void add(const Prepared<words>& prepared, std::size_t leaf,
                          const Mask<words>& mask, double* steps) {
    std::fill(leaf_.begin(), leaf_.end(), 0.0);
    serving::add_leaf(*prepared.tree, sum_.forest.shape, sum_.hard_votes, leaf, leaf_.data());
    for (std::size_t from = find<true>(mask, 0); from < n_;) {
      const std::size_t to = std::min(n_, find<false>(mask, from));
      if (sum_.one_each) {
        steps[from * n_scores_ + prepared.score] += leaf_[0];
        steps[to * n_scores_ + prepared.score] -= leaf_[0];
      } else {
        for (std::size_t k = 0; k < n_scores_; ++k) {
          steps[from * n_scores_ + k] += leaf_[k];
          steps[to * n_scores_ + k] -= leaf_[k];
        }
      }
      if (to >= n_) return;
      from = find<true>(mask, to);
    }
  }

 private:
  const TreeSum& sum_;
  std::size_t n_;
  std::size_t n_scores_;
  std::vector<double> leaf_;
};

// The settings [first, first + n), n up to 64 * words. steps: of all rows together, one after
// another for each block, or of each row.
template <std::size_t words>
void run(const TreeSum& sum, const table::RowReader& reader, std::size_t n_rows,
         const Settings& settings, std::size_t first, std::size_t n, bool by_row, int n_threads,
         double* steps) {
  std::vector<std::uint32_t> position(sum.forest.n_features(), not_set);
  for (std::size_t f = 0; f < settings.features.size(); ++f) {
    position[settings.features[f]] = static_cast<std::uint32_t>(f);
  }
  Mask<words> all{};
  for (std::size_t s = 0; s < n; ++s) all[s / 64] |= std::uint64_t{1} << (s % 64);
  const std::size_t most = std::min(block_rows, reader.max_rows());
  const std::size_t n_blocks = (n_rows + most - 1) / most;
  std::vector<Prepared<words>> group;
  for (std::size_t begin = 0; begin < sum.n_trees;) {
    std::size_t end = begin;
    for (std::size_t nodes = 0; end < sum.n_trees && (end == begin || nodes < group_nodes); ++end) {
      nodes += sum.forest.trees[end].nodes.size();
    }
    group.resize(end - begin);
    parallel_for(group.size(), n_threads, [&](std::size_t i, int) {
      prepare(sum, begin + i, settings, first, n, position, group[i]);
    });
    parallel_for(n_blocks, n_threads, [&](std::size_t block, int) {
      Steps<words> adder(sum, n);
      const std::size_t from = block * most;
      const std::size_t m = std::min(most, n_rows - from);
      double* const own = steps + (by_row ? from : block) * adder.size();
      reader.read(from, m, [&](const auto* rows, std::size_t stride, bool) {
        for (const Prepared<words>& prepared : group) {
          walk(prepared, rows, stride, m, all,
               [&](std::uint32_t row, std::size_t leaf, const Mask<words>& mask) {
                 adder.add(prepared, leaf, mask, own + (by_row ? row * adder.size() : 0));
               });
        }
      });
    });
    begin = end;
  }
}

// The same for small trees, whose splits on set columns are decided first.
void run_decided(const TreeSum& sum, const table::RowReader& reader, std::size_t n_rows,
                 std::size_t most, const DecidedTrees& trees, std::size_t n, bool by_row,
                 int n_threads, double* steps) {
  constexpr std::size_t group = 256;  // trees whose values for a block stay in the cache
  const std::size_t n_trees = trees.forest.trees.size();
  const std::size_t n_scores = sum.n_scores;
  const std::size_t size = (n + 1) * n_scores;
  std::vector<serving::BlockScorer> scorers;
  for (std::size_t t = 0; t < n_trees; t += group) {
    scorers.emplace_back(trees.forest, t, std::min(n_trees, t + group));
  }
  const std::size_t n_blocks = (n_rows + most - 1) / most;
  parallel_for(n_blocks, n_threads, [&](std::size_t block, int) {
    const std::size_t end = std::min(n_rows, (block + 1) * most);
    std::vector<double> values(std::min(serving::BlockScorer::block_rows, most) * group);
    std::vector<double> sums(group);
    for (std::size_t from = block * most; from < end; from += serving::BlockScorer::block_rows) {
      const std::size_t m = std::min(serving::BlockScorer::block_rows, end - from);
      reader.read(from, m, [&](const auto* rows, std::size_t stride, bool) {
        for (std::size_t g = 0; g < scorers.size(); ++g) {
          const std::size_t width = std::min(group, n_trees - g * group);
          std::fill(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(m * group), 0.0);
          scorers[g].add(rows, stride, m, group, values.data());
          const auto add = [&](const double* of_trees, double* own) {
            for (std::size_t i = 0; i < width; ++i) {
              const std::size_t t = g * group + i;
              const std::size_t k = trees.source[t] % n_scores;
              for (std::size_t r = trees.run_start[t]; r < trees.run_start[t + 1]; ++r) {
                own[trees.runs[r].from * n_scores + k] += of_trees[i];
                own[trees.runs[r].to * n_scores + k] -= of_trees[i];
              }
            }
          };
          if (by_row) {
            for (std::size_t i = 0; i < m; ++i) {
              add(values.data() + i * group, steps + (from + i) * size);
            }
            continue;
          }
          std::fill(sums.begin(), sums.end(), 0.0);
          for (std::size_t i = 0; i < m; ++i) {
            for (std::size_t j = 0; j < width; ++j) sums[j] += values[i * group + j];
          }
          add(sums.data(), steps + block * size);
        }
      });
    }
  });
}

void run_all(const TreeSum& sum, const table::Table& table, const Settings& settings, bool by_row,
             int n_threads, double* out) {
  if (sum.n_trees > sum.forest.trees.size()) throw common::InputError("a forest has fewer trees");
  const std::size_t width = sum.forest.shape.width();
  if (sum.n_scores == 0 || (sum.one_each ? width != 1 : width != sum.n_scores)) {
    throw common::InputError("a forest's leaves hold other scores than requested");
  }
  table::RowReader reader(table, sum.forest.n_categories);
  for (std::size_t s = 0; s < settings.n; ++s) {
    for (std::size_t f = 0; f < settings.features.size(); ++f) {
      if (settings.features[f] >= table.n_features()) {
        throw common::InputError("a column is not there");
      }
      const std::int32_t n_categories = sum.forest.n_categories[settings.features[f]];
      const double value = settings.values[s * settings.features.size() + f];
      if (n_categories > 0 && !std::isnan(value) &&
          !(value >= 0 && value < static_cast<double>(n_categories))) {
        throw common::InputError("a setting names a category that is not there");
      }
    }
  }
  const std::size_t n_rows = table.n_rows;
  const std::size_t n_scores = sum.n_scores;
  const std::size_t most = std::min(block_rows, reader.max_rows());
  const std::size_t n_sums = by_row ? n_rows : (n_rows + most - 1) / most;
  constexpr std::size_t most_settings = 512;
  for (std::size_t first = 0; first < settings.n; first += most_settings) {
    const std::size_t n = std::min(most_settings, settings.n - first);
    const std::size_t size = (n + 1) * n_scores;
    std::vector<double> steps(n_sums * size);
    const auto call = [&]<std::size_t words>() {
      run<words>(sum, reader, n_rows, settings, first, n, by_row, n_threads, steps.data());
    };
    const DecidedTrees decided = decide_trees(sum, settings, first, n, n_rows);
    if (!decided.forest.trees.empty()) {
      run_decided(sum, reader, n_rows, most, decided, n, by_row, n_threads, steps.data());
    } else if (n <= 64) {
      call.template operator()<1>();
    } else if (n <= 128) {
      call.template operator()<2>();
    } else if (n <= 256) {
      call.template operator()<4>();
    } else {
      call.template operator()<8>();
    }
    for (std::size_t i = 0; i < n_sums; ++i) {
      double* const to = out + (by_row ? i * settings.n * n_scores : 0) + first * n_scores;
      for (std::size_t k = 0; k < n_scores; ++k) {
        double score = 0;
        for (std::size_t s = 0; s < n; ++s) {
          score += steps[i * size + s * n_scores + k];
          to[s * n_scores + k] += score;
        }
      }
    }
  }
}

}  // namespace

void sum_settings(const TreeSum& sum, const table::Table& table, const Settings& settings,
                  int n_threads, double* out) {
  std::fill(out, out + settings.n * sum.n_scores, 0.0);
  run_all(sum, table, settings, false, n_threads, out);
}

void score_settings(const TreeSum& sum, const table::Table& table, const Settings& settings,
                    int n_threads, double* out) {
  std::fill(out, out + table.n_rows * settings.n * sum.n_scores, 0.0);
  run_all(sum, table, settings, true, n_threads, out);
}

}  // namespace spinney::explain
