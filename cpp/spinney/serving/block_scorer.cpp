#include "spinney/serving/block_scorer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "spinney/common/dispatch.h"
#include "spinney/common/large_array.h"
#include "spinney/forest/traversal.h"

namespace spinney::serving {

namespace {

constexpr std::size_t block = BlockScorer::block_rows;
constexpr std::size_t chunk_rows = 128;  // rows and columns that are coded together
constexpr std::size_t chunk_columns = 8;
constexpr std::size_t side_by_side = 4;  // trees whose values are added in one pass
constexpr std::size_t in_flight = 8;     // rows that descend side by side
constexpr std::size_t max_leaves = 4096;
constexpr std::size_t max_depth = 64;      // of trees with more than max_exits leaves
constexpr std::size_t max_results = 4096;  // of a batch: they should stay in the nearer caches
constexpr std::uint32_t missing_category = ~std::uint32_t{0};

// Nanoseconds per row, measured. They select between methods with the same result.
constexpr double step_cost = 1.0;      // of a level below the first ones
constexpr double coding_cost = 1.5;    // of a value
constexpr double descent_cost = 10.0;  // of a tree, by values

// How many of the ascending values are below one; without branches, which are unpredictable.
std::size_t count_smaller(const std::vector<double>& values, double one) {
  const double* from = values.data();
  std::size_t n = values.size();
  for (; n > 1; n -= n / 2) from += static_cast<std::size_t>(from[n / 2 - 1] < one) * (n / 2);
  return static_cast<std::size_t>(from - values.data()) + (n == 1 && *from < one ? 1 : 0);
}

// Splits of each level; parents come before their children.
std::vector<std::size_t> count_levels(const forest::CompactTree& tree) {
  std::vector<std::uint16_t> level(tree.nodes.size());
  std::vector<std::size_t> count;
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    if (level[i] == count.size()) count.push_back(0);
    ++count[level[i]];
    for (const std::int32_t child : tree.nodes[i].child) {
      if (child >= 0) {
        level[static_cast<std::size_t>(child)] = static_cast<std::uint16_t>(level[i] + 1);
      }
    }
  }
  return count;
}

// The first levels, which are applied to all rows.
struct Levels {
  std::size_t n;
  bool by_bits;
};

Levels choose_levels(const forest::CompactTree& tree, const std::vector<std::size_t>& of_level,
                     const BlockKernels& kernels) {
  const std::size_t n_levels = of_level.size();
  const bool whole = tree.n_leaves() <= BlockScorer::max_exits;
  if (whole && !tree.category_bits.empty()) return {n_levels, false};
  Levels best{0, false};
  double least = step_cost * static_cast<double>(n_levels);
  const auto consider = [&](std::size_t n, bool by_bits, double cost) {
    cost += step_cost * static_cast<double>(n_levels - n);
    if (cost >= least) return;
    least = cost;
    best = {n, by_bits};
  };
  std::size_t n_splits = 0;
  for (std::size_t n = 1; n <= n_levels; ++n) {
    n_splits += of_level[n - 1];
    if (n_splits >= BlockScorer::max_exits) break;
    consider(n, false, kernels.apply_cost * static_cast<double>(n_splits));
  }
  if (kernels.compare == nullptr) return best;
  for (std::size_t n = 1; n <= std::min(n_levels, BlockKernels::max_levels); ++n) {
    const std::size_t n_positions = std::size_t{1} << n;
    if (n_positions > 4 * tree.n_leaves()) break;  // they also need memory
    consider(n, true,
             kernels.select_cost * static_cast<double>(n_positions) +
                 kernels.level_cost * static_cast<double>(n));
  }
  return best;
}

// out[i]: codes[i], or 255 where the value is missing.
SPINNEY_INLINE void raise_missing(const double* __restrict values, std::size_t n,
                                  const std::uint8_t* __restrict codes,
                                  std::uint8_t* __restrict out) {
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = static_cast<std::uint8_t>(codes[i] | (values[i] != values[i] ? 255 : 0));
  }
}

}  // namespace

// Thresholds of each feature in the trees of a chunk, ascending, and its columns.
struct BlockScorer::Cuts {
  std::vector<std::vector<double>> of_feature;
  std::vector<std::int32_t> column;   // index among the chunk's columns; -1: unused
  std::vector<std::uint32_t> result;  // numbers in a batch, by lane and last code; 0: none yet

  explicit Cuts(std::size_t n_features) : of_feature(n_features), column(n_features, -1) {}

  // Adds the thresholds of a tree; returns false, without a change, if a column has too many.
  bool add(const forest::CompactTree& tree) {
    std::vector<std::pair<std::size_t, double>> added;
    bool fits = true;
    for (std::size_t i = 0; i < tree.nodes.size() && fits; ++i) {
      if (tree.nodes[i].is_categorical()) continue;
      const std::size_t feature = tree.nodes[i].feature_index();
      std::vector<double>& cuts = of_feature[feature];
      const double threshold = tree.threshold_of(i);
      const std::size_t at = count_smaller(cuts, threshold);
      if (at < cuts.size() && cuts[at] == threshold) continue;
      fits = cuts.size() < max_cuts;
      if (!fits) break;
      cuts.insert(cuts.begin() + static_cast<std::ptrdiff_t>(at), threshold);
      added.emplace_back(feature, threshold);
    }
    if (!fits) {
      for (const auto& [feature, threshold] : added) {
        std::vector<double>& cuts = of_feature[feature];
        cuts.erase(std::lower_bound(cuts.begin(), cuts.end(), threshold));
      }
      return false;
    }
    for (const forest::CompactNode& node : tree.nodes) column[node.feature_index()] = 0;
    return true;
  }
};

void BlockScorer::apply_splits(const CodeSplit* begin, const CodeSplit* end,
                               const std::uint8_t* codes, const std::uint32_t* categories,
                               std::size_t n, std::uint8_t* position) const {
  for (const CodeSplit* split = begin; split < end;) {
    if (split->categories == nullptr) {
      const CodeSplit* last = split + 1;
      while (last < end && last->categories == nullptr) ++last;
      kernels_.apply(split, last, codes, n, position);
      split = last;
      continue;
    }
    const std::uint32_t* const of = categories + split->lane / 2 * block;
    for (std::size_t i = 0; i < n; ++i) {
      if (position[i] != split->position) continue;
      const bool left = of[i] == missing_category ? split->lane % 2 == 0
                                                  : forest::has_category(split->categories, of[i]);
      if (!left) position[i] = split->right;
    }
    ++split;
  }
}

bool BlockScorer::serves(const forest::Forest& forest, std::size_t first, std::size_t last,
                         std::size_t n_rows) {
  if (forest.shape.width() > 1 || n_rows < 32) return false;
  std::size_t n_splits = 0;
  for (std::size_t t = first; t < last; ++t) n_splits += forest.trees[t].nodes.size();
  // Sorting the thresholds costs about as much as a few rows' descents of every tree.
  if (n_rows * (last - first) < 8 * n_splits) return false;
  for (std::size_t t = first; t < last; ++t) {
    const forest::CompactTree& tree = forest.trees[t];
    if (tree.n_leaves() <= max_exits) continue;
    if (tree.n_leaves() > max_leaves || !tree.category_bits.empty()) return false;
    if (count_levels(tree).size() > max_depth) return false;
    std::vector<std::uint32_t> n_of_feature(forest.n_features());
    for (const forest::CompactNode& node : tree.nodes) {
      if (++n_of_feature[node.feature_index()] > max_cuts) return false;
    }
  }
  return true;
}

BlockScorer::BlockScorer(const forest::Forest& forest, std::size_t first, std::size_t last,
                         const BlockKernels& kernels)
    : kernels_(kernels), first_(first) {
  for (std::size_t begin = first; begin < last;) {
    Cuts cuts(forest.n_features());
    std::size_t end = begin;
    while (end < last && cuts.add(forest.trees[end])) ++end;
    Chunk chunk{begin - first, end - first, {}, {}, {}};
    for (std::uint32_t f = 0; f < cuts.column.size(); ++f) {
      if (cuts.column[f] < 0) continue;
      cuts.column[f] = static_cast<std::int32_t>(chunk.columns.size());
      const auto n_categories = static_cast<std::uint32_t>(forest.n_categories[f]);
      chunk.columns.push_back({f, n_categories, static_cast<std::int32_t>(chunk.searches.size())});
      any_categories_ |= n_categories > 0;
      if (n_categories == 0) chunk.searches.emplace_back(cuts.of_feature[f]);
    }
    max_columns_ = std::max(max_columns_, chunk.columns.size());
    for (std::size_t t = begin; t < end; ++t) add_tree(forest.trees[t], cuts, chunk);
    for (Batch& batch : chunk.batches) {
      std::erase_if(batch.of_lane, [](const auto& lane) { return lane.second.empty(); });
      max_results_ = std::max(max_results_, batch.n_results);
    }
    chunks_.push_back(std::move(chunk));
    begin = end;
  }
}

void BlockScorer::add_tree(const forest::CompactTree& tree, Cuts& cuts, Chunk& chunk) {
  const std::vector<std::size_t> of_level = count_levels(tree);
  const Levels levels = choose_levels(tree, of_level, kernels_);
  const std::size_t n_first = levels.n;
  const bool by_bits = levels.by_bits;
  const std::size_t n_steps = of_level.size() - n_first;
  if (chunk.batches.empty() ||
      (by_bits && chunk.batches.back().n_results + tree.nodes.size() > max_results)) {
    chunk.batches.push_back({trees_.size(), trees_.size(), 1, {}});
    for (std::uint32_t lane = 0; lane < 2 * chunk.columns.size(); ++lane) {
      chunk.batches.back().of_lane.emplace_back(lane, std::vector<CodeComparison>());
    }
    cuts.result.assign(2 * chunk.columns.size() * (max_cuts + 1), 0);
  }
  Batch& batch = chunk.batches.back();
  ScoredTree scored{splits_.size(), 0,       values_.size(),        steps_.size(),
                    exits_.size(),  n_steps, by_bits ? n_first : 0, path_splits_.size()};
  std::size_t n_exits = 0;
  // The lane, and the last code that goes left.
  const auto code_split_of = [&](std::size_t index) -> std::pair<std::uint32_t, std::uint8_t> {
    const forest::CompactNode& node = tree.nodes[index];
    const std::size_t f = node.feature_index();
    const std::uint32_t missing_right = node.missing_left() ? 0 : 1;
    const std::uint32_t lane = 2 * static_cast<std::uint32_t>(cuts.column[f]) + missing_right;
    if (node.is_categorical()) return {lane, 0};
    const std::size_t below = count_smaller(cuts.of_feature[f], tree.threshold_of(index));
    return {lane, static_cast<std::uint8_t>(below)};
  };
  const auto add_steps = [&](const auto& self, std::int32_t name) -> std::uint32_t {
    const auto mine = static_cast<std::uint32_t>(steps_.size() - scored.steps);
    steps_.push_back({0, 255, {mine, mine}});
    if (name < 0) {
      values_.push_back(tree.values[static_cast<std::size_t>(~name)]);
      return mine;
    }
    values_.push_back(0.0);
    const auto index = static_cast<std::size_t>(name);
    const auto [lane, last_left] = code_split_of(index);
    const std::uint32_t left = self(self, tree.nodes[index].child[0]);
    const std::uint32_t right = self(self, tree.nodes[index].child[1]);
    steps_[scored.steps + mine] = {
        lane * static_cast<std::uint32_t>(block), last_left, {left, right}};
    return mine;
  };
  const auto add_splits = [&](const auto& self, std::int32_t name, std::size_t level) -> void {
    if (name < 0 || level == n_first) {
      ++n_exits;
      if (n_steps > 0) {
        const std::uint32_t step = add_steps(add_steps, name);
        exits_.push_back(step);
      } else {
        values_.push_back(tree.values[static_cast<std::size_t>(~name)]);
      }
      return;
    }
    const auto index = static_cast<std::size_t>(name);
    const forest::CompactNode& node = tree.nodes[index];
    const auto [lane, last_left] = code_split_of(index);
    const CodeSplit split{lane, static_cast<std::uint8_t>(n_exits), 0, last_left,
                          tree.categories_of(index)};
    const std::size_t mine = splits_.size();
    splits_.push_back(split);
    self(self, node.child[0], level + 1);
    splits_[mine].right = static_cast<std::uint8_t>(n_exits);
    self(self, node.child[1], level + 1);
  };
  // Positions are numbered by the paths that lead to them; a leaf further up has several.
  const auto add_bits = [&](const auto& self, std::int32_t name, std::size_t level,
                            std::size_t path) -> void {
    if (name >= 0 && level < n_first) {
      const auto index = static_cast<std::size_t>(name);
      const auto [lane, last_left] = code_split_of(index);
      std::uint32_t& number = cuts.result[lane * (max_cuts + 1) + last_left];
      if (number == 0) {
        number = static_cast<std::uint32_t>(batch.n_results++);
        batch.of_lane[lane].second.push_back({number, last_left});
      }
      path_splits_[scored.path_splits + (std::size_t{1} << level) - 1 + path] = number;
      self(self, tree.nodes[index].child[0], level + 1, 2 * path);
      self(self, tree.nodes[index].child[1], level + 1, 2 * path + 1);
      return;
    }
    const std::size_t n_positions = std::size_t{1} << (n_first - level);
    if (n_steps > 0) {
      exits_.insert(exits_.end(), n_positions, add_steps(add_steps, name));
    } else {
      values_.insert(values_.end(), n_positions, tree.values[static_cast<std::size_t>(~name)]);
    }
  };
  const std::int32_t root = tree.root();
  if (by_bits) {
    path_splits_.resize(path_splits_.size() + (std::size_t{1} << n_first) - 1);
    add_bits(add_bits, root, 0, 0);
  } else {
    add_splits(add_splits, root, 0);
  }
  scored.end = splits_.size();
  trees_.push_back(scored);
  batch.end = trees_.size();
}

bool BlockScorer::is_faster() const {
  double coded = 0;
  for (const Chunk& chunk : chunks_) coded += static_cast<double>(chunk.columns.size());
  return coding_cost * coded < descent_cost * static_cast<double>(trees_.size());
}

template <class Value>
void BlockScorer::encode(const Chunk& chunk, const Value* rows, std::size_t stride, std::size_t n,
                         std::uint8_t* codes, std::uint32_t* categories) {
  alignas(64) double values[chunk_columns][chunk_rows];
  const std::size_t n_columns = chunk.columns.size();
  for (std::size_t begin = 0; begin < n_columns; begin += chunk_columns) {
    const std::size_t m = std::min(chunk_columns, n_columns - begin);
    for (std::size_t first = 0; first < n; first += chunk_rows) {
      const std::size_t count = std::min(chunk_rows, n - first);
      for (std::size_t i = 0; i < count; ++i) {  // row by row: neighbours share cache lines
        const Value* const row = rows + (first + i) * stride;
        for (std::size_t c = 0; c < m; ++c) {
          values[c][i] = static_cast<double>(row[chunk.columns[begin + c].feature]);
        }
      }
      for (std::size_t c = 0; c < m; ++c) {
        const CodedColumn& column = chunk.columns[begin + c];
        const double* const of = values[c];
        if (column.n_categories > 0) {
          std::uint32_t* const to = categories + (begin + c) * block + first;
          const double beyond = column.n_categories;
          for (std::size_t i = 0; i < count; ++i) {
            const bool known = of[i] >= 0 && of[i] < beyond;  // NaN is not
            to[i] = known ? static_cast<std::uint32_t>(of[i]) : missing_category;
          }
          continue;
        }
        std::uint8_t* const to = codes + 2 * (begin + c) * block + first;
        table::count_below(of, count, chunk.searches[static_cast<std::size_t>(column.search)], to);
        // A missing value is below every threshold in one lane and above all in the other.
        common::dispatch<raise_missing>(of, count, to, to + block);
      }
    }
  }
}

void BlockScorer::find_values(const ScoredTree& tree, const std::uint8_t* codes,
                              const std::uint32_t* categories, const std::uint64_t* results,
                              std::size_t n, std::uint16_t* at) const {
  if (tree.n_levels > 0) {
    kernels_.find_positions(path_splits_.data() + tree.path_splits, tree.n_levels, results, at);
  } else {
    alignas(64) std::uint8_t position[block];
    std::memset(position, 0, n);
    apply_splits(splits_.data() + tree.begin, splits_.data() + tree.end, codes, categories, n,
                 position);
    for (std::size_t i = 0; i < n; ++i) at[i] = position[i];
  }
  if (tree.n_steps == 0) return;
  const std::uint32_t* const exits = exits_.data() + tree.exits;
  const Step* const steps = steps_.data() + tree.steps;
  for (std::size_t first = 0; first < n; first += in_flight) {
    std::array<std::uint32_t, in_flight> here;
    for (std::size_t i = 0; i < in_flight; ++i) here[i] = exits[at[first + i]];
    for (std::size_t k = 0; k < tree.n_steps; ++k) {
      SPINNEY_UNROLL(8)
      for (std::size_t i = 0; i < in_flight; ++i) {
        const Step& step = steps[here[i]];
        const std::uint32_t code = codes[step.codes + first + i];
        here[i] = step.child[static_cast<std::size_t>(code > step.last_left)];
      }
    }
    for (std::size_t i = 0; i < in_flight; ++i) {
      at[first + i] = static_cast<std::uint16_t>(here[i]);
    }
  }
}

template <class Value>
void BlockScorer::add(const Value* rows, std::size_t stride, std::size_t n, std::size_t n_scores,
                      double* out) const {
  common::LargeArray<std::uint8_t> codes(2 * max_columns_ * block);
  std::fill(codes.begin(), codes.end(), std::uint8_t{0});
  std::vector<std::uint32_t> categories(any_categories_ ? max_columns_ * block : 0);
  common::LargeArray<std::uint64_t> results(std::max<std::size_t>(max_results_, 1) *
                                            BlockKernels::n_words);
  std::fill_n(results.data(), BlockKernels::n_words, 0);
  // Score by score.
  std::vector<double> by_score(n_scores > 1 ? n_scores * n : 0);
  for (std::size_t i = 0; n_scores > 1 && i < n; ++i) {
    for (std::size_t k = 0; k < n_scores; ++k) by_score[k * n + i] = out[i * n_scores + k];
  }
  double* const scores = n_scores > 1 ? by_score.data() : out;
  constexpr std::size_t unit = BlockKernels::apply_rows;
  const std::size_t filled = (n + unit - 1) / unit * unit;
  alignas(64) std::uint16_t at[side_by_side][block];
  const auto add_batch = [&](const Batch& batch) {
    for (const auto& [lane, comparisons] : batch.of_lane) {
      kernels_.compare(codes.data() + lane * block, comparisons, results.data());
    }
    const std::size_t n_first = std::min(n_scores, batch.end - batch.begin);
    for (std::size_t first = batch.begin; first < batch.begin + n_first; ++first) {
      double* const to = scores + (first_ + first) % n_scores * n;
      for (std::size_t t = first; t < batch.end;) {
        std::array<const double*, side_by_side> values{};
        std::size_t m = 0;
        for (; m < side_by_side && t < batch.end; ++m, t += n_scores) {
          find_values(trees_[t], codes.data(), categories.data(), results.data(), filled, at[m]);
          values[m] = values_.data() + trees_[t].values;
        }
        if (m == side_by_side) {
          for (std::size_t i = 0; i < n; ++i) {
            to[i] = (((to[i] + values[0][at[0][i]]) + values[1][at[1][i]]) + values[2][at[2][i]]) +
                    values[3][at[3][i]];
          }
          continue;
        }
        for (std::size_t j = 0; j < m; ++j) {
          for (std::size_t i = 0; i < n; ++i) to[i] += values[j][at[j][i]];
        }
      }
    }
  };
  for (const Chunk& chunk : chunks_) {
    encode(chunk, rows, stride, n, codes.data(), categories.data());
    for (const Batch& batch : chunk.batches) add_batch(batch);
  }
  for (std::size_t i = 0; n_scores > 1 && i < n; ++i) {
    for (std::size_t k = 0; k < n_scores; ++k) out[i * n_scores + k] = by_score[k * n + i];
  }
}

template void BlockScorer::add(const float*, std::size_t, std::size_t, std::size_t, double*) const;
template void BlockScorer::add(const double*, std::size_t, std::size_t, std::size_t, double*) const;

}  // namespace spinney::serving
