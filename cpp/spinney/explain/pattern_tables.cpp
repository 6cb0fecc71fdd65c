#include "spinney/explain/pattern_tables.h"

#include <algorithm>

#include "spinney/common/dispatch.h"
#include "spinney/explain/leaf_game.h"

namespace spinney::explain {

using common::dispatch;

namespace {

SPINNEY_INLINE void compare(const double* x, std::size_t n, double threshold,
                            std::uint8_t missing_left, std::uint8_t* out) {
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = static_cast<std::uint8_t>(static_cast<std::uint8_t>(x[i] <= threshold) |
                                       (static_cast<std::uint8_t>(x[i] != x[i]) & missing_left));
  }
}

SPINNEY_INLINE void meet(const std::uint8_t* sides, std::size_t n, std::uint8_t flip, bool first,
                         std::uint8_t* out) {
  if (first) {
    for (std::size_t i = 0; i < n; ++i) out[i] = sides[i] ^ flip;
  } else {
    for (std::size_t i = 0; i < n; ++i) out[i] &= sides[i] ^ flip;
  }
}

SPINNEY_INLINE void set_bit(const std::uint8_t* meets, std::size_t n, std::uint16_t bit,
                            std::uint16_t* out) {
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = static_cast<std::uint16_t>(out[i] + meets[i] * bit);
  }
}

// The number of positions is a constant, so the positions stay in registers.
template <std::size_t n_positions>
void look_up_few(const PatternTable& part, const std::uint16_t* pattern, std::size_t n,
                 std::size_t per_row, double* out) {
  std::size_t position[n_positions];
  for (std::size_t i = 0; i < n_positions; ++i) position[i] = part.position[i];
  const double* const table = part.table.data();
  for (std::size_t row = 0; row < n; ++row, out += per_row) {
    const double* const from = table + pattern[row] * n_positions;
    SPINNEY_UNROLL(16)
    for (std::size_t i = 0; i < n_positions; ++i) out[position[i]] += from[i];
  }
}

void look_up(const PatternTable& part, const std::uint16_t* pattern, std::size_t n,
             std::size_t per_row, double* out) {
  switch (part.position.size()) {
#define SPINNEY_CASE(N) \
  case N:               \
    return look_up_few<N>(part, pattern, n, per_row, out)
    SPINNEY_CASE(1);
    SPINNEY_CASE(2);
    SPINNEY_CASE(3);
    SPINNEY_CASE(4);
    SPINNEY_CASE(5);
    SPINNEY_CASE(6);
    SPINNEY_CASE(7);
    SPINNEY_CASE(8);
    SPINNEY_CASE(9);
    SPINNEY_CASE(10);
    SPINNEY_CASE(11);
    SPINNEY_CASE(12);
#undef SPINNEY_CASE
    default:
      break;
  }
  const std::size_t n_positions = part.position.size();
  for (std::size_t row = 0; row < n; ++row, out += per_row) {
    const double* const from = part.table.data() + pattern[row] * n_positions;
    for (std::size_t i = 0; i < n_positions; ++i) out[part.position[i]] += from[i];
  }
}

void find_patterns(const std::vector<std::vector<Step>>& bits, const std::uint8_t* sides,
                   std::size_t n, std::vector<std::uint8_t>& meets,
                   std::vector<std::uint16_t>& pattern) {
  pattern.assign(n, 0);
  meets.resize(n);
  for (std::size_t b = 0; b < bits.size(); ++b) {
    bool first = true;
    for (const Step& step : bits[b]) {
      dispatch<meet>(sides + static_cast<std::size_t>(step.node) * n, n, step.left ? 0 : 1, first,
                     meets.data());
      first = false;
    }
    dispatch<set_bit>(meets.data(), n, static_cast<std::uint16_t>(1U << b), pattern.data());
  }
}

class Planner {
 public:
  Planner(const GameTree& tree, const TableLimits& limits, const RowValues* background,
          const OutputLayout& layout)
      : tree_(tree), limits_(limits), background_(background), layout_(layout), walk_(tree) {
    n_splits_.assign(tree.size(), 0);
    for (std::size_t node = tree.size(); node-- > 0;) {
      if (tree.is_leaf(node)) continue;
      n_splits_[node] = 1 + n_splits_[child(node, true)] + n_splits_[child(node, false)];
    }
    plan_.walked.assign(tree.size(), 0);
    if (background != nullptr) {
      sides_.resize(tree.size() * background->n);
      for (std::size_t node = 0; node < tree.size(); ++node) {
        if (!tree.is_leaf(node)) {
          find_sides(tree, node, *background, sides_.data() + node * background->n);
        }
      }
    }
  }

  TreePlan plan() {
    while (limits_.leaf > 0) {
      bytes_ = 0;
      measure(0);
      if (bytes_ <= limits_.bytes) break;
      limits_.leaf -= 1;
      limits_.merged = std::min(limits_.merged, limits_.leaf);
    }
    divide(0);
    return std::move(plan_);
  }

 private:
  std::size_t child(std::size_t node, bool left) const {
    return static_cast<std::size_t>(left ? tree_.left[node] : tree_.right[node]);
  }

  // Bytes of the tables that divide would make.
  void measure(std::size_t node) {
    const std::size_t bits = walk_.path().size() + n_splits_[node];
    if (bits <= (tree_.is_leaf(node) ? limits_.leaf : limits_.merged)) {
      const std::size_t slots = layout_.interactions ? bits * (bits + 1) / 2 : bits;
      bytes_ += (std::size_t{1} << bits) * slots * tree_.width * sizeof(double);
    } else if (!tree_.is_leaf(node)) {
      for (const bool left : {true, false}) {
        walk_.enter(node, left);
        measure(child(node, left));
        walk_.leave();
      }
    }
  }

  void divide(std::size_t node) {
    const std::size_t n_conditions = walk_.path().size();
    if (tree_.is_leaf(node)) {
      if (n_conditions > limits_.leaf) {
        plan_.walked[node] = 1;
      } else {
        make_table(node);
      }
      return;
    }
    if (n_conditions + n_splits_[node] <= limits_.merged) {
      make_table(node);
      return;
    }
    for (const bool left : {true, false}) {
      walk_.enter(node, left);
      divide(child(node, left));
      walk_.leave();
      plan_.walked[node] |= plan_.walked[child(node, left)];
    }
  }

  void make_table(std::size_t root) {
    PatternTable& part = plan_.tables.emplace_back();
    for (const Condition& condition : walk_.path()) part.bits.push_back(condition.steps);
    bit_of_.clear();
    leaves_.clear();
    features_.clear();
    for (const Condition& condition : walk_.path()) features_.push_back(condition.feature);
    n_above_ = part.bits.size();
    above_ = walk_.path();
    collect(root, part);
    std::sort(features_.begin(), features_.end());
    const std::size_t width = tree_.width;
    if (layout_.interactions) {
      for (std::size_t i = 0; i < features_.size(); ++i) {
        for (std::size_t j = i + 1; j < features_.size(); ++j) {
          add_position(part, layout_.of(features_[i], features_[j]));
        }
      }
    } else {
      for (const std::int32_t feature : features_) add_position(part, layout_.of(feature));
    }
    if (part.position.empty()) {
      plan_.tables.pop_back();
      return;
    }
    const std::size_t n_patterns = std::size_t{1} << part.bits.size();
    part.table.assign(n_patterns * part.position.size(), 0.0);
    for (const LeafOfPart& leaf : leaves_) add_leaf(leaf, width, part);
  }

  void add_position(PatternTable& part, std::size_t first) const {
    for (std::size_t w = 0; w < tree_.width; ++w) {
      part.position.push_back(static_cast<std::uint32_t>(first + tree_.output + w));
    }
  }

  struct LeafOfPart {
    std::size_t node;
    Path path;
  };

  void collect(std::size_t node, PatternTable& part) {
    if (tree_.is_leaf(node)) {
      leaves_.push_back({node, walk_.path()});
      return;
    }
    bit_of_.push_back({static_cast<std::int32_t>(node), part.bits.size()});
    part.bits.push_back({{static_cast<std::int32_t>(node), true}});
    if (std::find(features_.begin(), features_.end(), tree_.feature[node]) == features_.end()) {
      features_.push_back(tree_.feature[node]);
    }
    for (const bool left : {true, false}) {
      walk_.enter(node, left);
      collect(child(node, left), part);
      walk_.leave();
    }
  }

  void find_shares(const Path& path) {
    const std::size_t m = path.size();
    if (background_ == nullptr) {
      shares_.clear();
      for (const Condition& condition : path) shares_.push_back(condition.share);
      multiply_shares(shares_.data(), m, share_of_set_);
      return;
    }
    std::vector<std::vector<Step>> bits;
    for (const Condition& condition : path) bits.push_back(condition.steps);
    find_patterns(bits, sides_.data(), background_->n, meets_, pattern_);
    share_of_set_.assign(std::size_t{1} << m, 0.0);
    for (const std::uint16_t pattern : pattern_) share_of_set_[pattern] += 1;
    sum_supersets(m, share_of_set_);
    for (double& share : share_of_set_) share /= static_cast<double>(background_->n_whole);
  }

  void add_leaf(const LeafOfPart& leaf, std::size_t width, PatternTable& part) {
    const std::size_t m = leaf.path.size();
    find_shares(leaf.path);
    game_.set(m, share_of_set_);
    std::vector<std::size_t> slot;  // of the leaf's features or pairs among the part's
    const auto rank = [&](std::size_t i) {
      return static_cast<std::size_t>(
          std::lower_bound(features_.begin(), features_.end(), leaf.path[i].feature) -
          features_.begin());
    };
    if (layout_.interactions) {
      game_.interactions(of_leaf_);
      const std::size_t n = features_.size();
      for (std::size_t i = 0; i < m; ++i) {
        for (std::size_t j = i + 1; j < m; ++j) {
          const std::size_t low = std::min(rank(i), rank(j));
          const std::size_t high = std::max(rank(i), rank(j));
          slot.push_back(low * n - low * (low + 1) / 2 + high - low - 1);
        }
      }
    } else {
      game_.values(of_leaf_);
      for (std::size_t i = 0; i < m; ++i) slot.push_back(rank(i));
    }
    // Which bits of the part each condition needs, and how.
    std::vector<std::size_t> mask(m, 0);
    std::vector<std::size_t> wanted(m, 0);
    for (std::size_t i = 0; i < m; ++i) {
      std::size_t n_above = 0;
      if (i < n_above_) {  // the path above comes first, in the same order
        mask[i] = wanted[i] = std::size_t{1} << i;
        n_above = above_[i].steps.size();
      }
      for (std::size_t s = n_above; s < leaf.path[i].steps.size(); ++s) {
        const Step& step = leaf.path[i].steps[s];
        for (const BitOfNode& known : bit_of_) {
          if (known.node != step.node) continue;
          mask[i] |= std::size_t{1} << known.bit;
          if (step.left) wanted[i] |= std::size_t{1} << known.bit;
        }
      }
    }
    const double* const value = tree_.value.data() + leaf.node * width;
    const std::size_t n_slots = slot.size();
    const std::size_t n_patterns = std::size_t{1} << part.bits.size();
    for (std::size_t pattern = 0; pattern < n_patterns; ++pattern) {
      std::size_t met = 0;
      for (std::size_t i = 0; i < m; ++i) {
        met |= static_cast<std::size_t>((pattern & mask[i]) == wanted[i]) << i;
      }
      const double* const from = of_leaf_.data() + met * n_slots;
      double* const to = part.table.data() + pattern * part.position.size();
      if (width == 1) {
        for (std::size_t s = 0; s < n_slots; ++s) to[slot[s]] += value[0] * from[s];
      } else {
        for (std::size_t s = 0; s < n_slots; ++s) {
          for (std::size_t w = 0; w < width; ++w) to[slot[s] * width + w] += value[w] * from[s];
        }
      }
    }
  }

  struct BitOfNode {
    std::int32_t node;
    std::size_t bit;
  };
  const GameTree& tree_;
  TableLimits limits_;
  std::size_t bytes_ = 0;
  const RowValues* background_;
  const OutputLayout layout_;
  PathWalk walk_;
  TreePlan plan_;
  std::vector<std::size_t> n_splits_;
  std::vector<std::uint8_t> sides_;  // of the background, [node][row]
  // The current part.
  std::size_t n_above_ = 0;
  Path above_;
  std::vector<BitOfNode> bit_of_;
  std::vector<LeafOfPart> leaves_;
  std::vector<std::int32_t> features_;
  LeafGame game_;
  std::vector<double> shares_, share_of_set_, of_leaf_;
  std::vector<std::uint8_t> meets_;
  std::vector<std::uint16_t> pattern_;
};

}  // namespace

void find_sides(const GameTree& tree, std::size_t node, const RowValues& rows, std::uint8_t* out) {
  const double* const x = rows.of(tree.feature[node]);
  if (!tree.is_categorical(node)) {
    dispatch<compare>(x, rows.n, tree.threshold[node], tree.missing_left[node], out);
    return;
  }
  for (std::size_t i = 0; i < rows.n; ++i) out[i] = tree.goes_left(node, x[i]) ? 1 : 0;
}

TreePlan plan_tree(const GameTree& tree, const TableLimits& limits, const RowValues* background,
                   const OutputLayout& layout) {
  return Planner(tree, limits, background, layout).plan();
}

void add_tables(const GameTree& tree, const TreePlan& plan, const RowValues& rows,
                TableScratch& scratch, std::size_t per_row, double* out) {
  if (plan.tables.empty()) return;
  const std::size_t n = rows.n;
  scratch.sides.resize(tree.size() * n);
  for (std::size_t node = 0; node < tree.size(); ++node) {
    if (!tree.is_leaf(node)) find_sides(tree, node, rows, scratch.sides.data() + node * n);
  }
  for (const PatternTable& part : plan.tables) {
    find_patterns(part.bits, scratch.sides.data(), n, scratch.meets, scratch.pattern);
    look_up(part, scratch.pattern.data(), n, per_row, out);
  }
}

}  // namespace spinney::explain
