#include "spinney/explain/pair_walk.h"

#include <vector>

#include "spinney/explain/leaf_game.h"

namespace spinney::explain {

namespace {

enum class Side : std::uint8_t { both, row, background };  // who meets a feature's conditions

class PairWalk {
 public:
  PairWalk(const GameTree& tree, const TreePlan& plan, const RowValues& rows,
           const RowValues& background, const OutputLayout& layout)
      : tree_(tree), plan_(plan), rows_(rows), background_(background), layout_(layout) {
    side_.assign(layout.n_features, Side::both);
    std::size_t depth = 0;
    std::vector<std::size_t> depths(tree.size(), 0);
    for (std::size_t node = 0; node < tree.size(); ++node) {
      depth = depth < depths[node] ? depths[node] : depth;
      if (tree.is_leaf(node)) continue;
      depths[static_cast<std::size_t>(tree.left[node])] = depths[node] + 1;
      depths[static_cast<std::size_t>(tree.right[node])] = depths[node] + 1;
    }
    most_ = depth + 1;
    beta_.resize(most_ * most_);
    for (std::size_t a = 0; a < most_; ++a) {
      for (std::size_t b = 0; b < most_; ++b) {
        beta_[a * most_ + b] = beta(a, b) / static_cast<double>(background.n_whole);
      }
    }
  }

  void add(std::size_t row, std::size_t other, double* out) {
    row_ = row;
    other_ = other;
    out_ = out;
    visit(0);
  }

 private:
  void visit(std::size_t node) {
    while (!tree_.is_leaf(node)) {
      if (plan_.walked[node] == 0) return;
      const std::int32_t feature = tree_.feature[node];
      const bool mine = tree_.goes_left(node, rows_.of(feature)[row_]);
      const bool theirs = tree_.goes_left(node, background_.of(feature)[other_]);
      Side& side = side_[static_cast<std::size_t>(feature)];
      if (side == Side::both && mine != theirs) {
        side = Side::row;
        from_row_.push_back(feature);
        visit(child(node, mine));
        from_row_.pop_back();
        side = Side::background;
        from_background_.push_back(feature);
        visit(child(node, theirs));
        from_background_.pop_back();
        side = Side::both;
        return;
      }
      node = child(node, side == Side::background ? theirs : mine);
    }
    if (plan_.walked[node] != 0) settle(node);
  }

  std::size_t child(std::size_t node, bool left) const {
    return static_cast<std::size_t>(left ? tree_.left[node] : tree_.right[node]);
  }

  // The leaf is reached by the coalitions that have all of from_row_ and none of from_background_.
  void settle(std::size_t leaf) {
    const std::size_t a = from_row_.size();
    const std::size_t b = from_background_.size();
    if (!layout_.interactions) {
      for (const std::int32_t f : from_row_) give(leaf, layout_.of(f), weight(a - 1, b));
      for (const std::int32_t f : from_background_) give(leaf, layout_.of(f), -weight(a, b - 1));
      return;
    }
    for (std::size_t i = 0; i < a; ++i) {
      for (std::size_t j = i + 1; j < a; ++j) {
        give(leaf, layout_.of(from_row_[i], from_row_[j]), weight(a - 2, b) / 2);
      }
      for (const std::int32_t f : from_background_) {
        give(leaf, layout_.of(from_row_[i], f), -weight(a - 1, b - 1) / 2);
      }
    }
    for (std::size_t i = 0; i < b; ++i) {
      for (std::size_t j = i + 1; j < b; ++j) {
        give(leaf, layout_.of(from_background_[i], from_background_[j]), weight(a, b - 2) / 2);
      }
    }
  }

  double weight(std::size_t a, std::size_t b) const { return beta_[a * most_ + b]; }

  void give(std::size_t leaf, std::size_t position, double factor) {
    for (std::size_t w = 0; w < tree_.width; ++w) {
      out_[position + tree_.output + w] += factor * tree_.value[leaf * tree_.width + w];
    }
  }

  const GameTree& tree_;
  const TreePlan& plan_;
  const RowValues& rows_;
  const RowValues& background_;
  const OutputLayout& layout_;
  std::size_t most_ = 1;
  std::vector<double> beta_;
  std::vector<Side> side_;
  std::vector<std::int32_t> from_row_;
  std::vector<std::int32_t> from_background_;
  std::size_t row_ = 0;
  std::size_t other_ = 0;
  double* out_ = nullptr;
};

}  // namespace

void add_pairs(const GameTree& tree, const TreePlan& plan, const RowValues& rows,
               const RowValues& background, const OutputLayout& layout, double* out) {
  if (!plan.any_walked()) return;
  PairWalk walk(tree, plan, rows, background, layout);
  for (std::size_t row = 0; row < rows.n; ++row) {
    for (std::size_t other = 0; other < background.n; ++other) {
      walk.add(row, other, out + row * layout.per_row());
    }
  }
}

}  // namespace spinney::explain
