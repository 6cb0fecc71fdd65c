// A tree as a game between features, and the terms of this folder.
//
// A *path* leads to a leaf; its conditions on one feature are one condition. A row matters only
// through its *pattern*: which conditions of a path it meets, one bit per feature. A coalition S of
// features that the row brings gives the leaf's value times Π_{j∈S} [row meets j] · share(not S),
// where share(U) is how much meets the conditions of U when the row does not decide: the product of
// the shares of training rows at the splits ("path dependent"), or the share of background rows
// ("interventional"). A tree's Shapley values are the sum of those of its leaves.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "spinney/forest/traversal.h"

namespace spinney::explain {

struct GameTree {
  std::size_t width = 1;   // numbers that a leaf holds
  std::size_t output = 0;  // the output that the first of them counts for
  std::vector<std::int32_t> left;
  std::vector<std::int32_t> right;  // children come after their parents
  std::vector<std::int32_t> feature;
  std::vector<double> threshold;
  std::vector<std::uint8_t> missing_left;
  std::vector<std::int64_t> category_start;  // no_categories for a numeric split
  std::vector<std::uint32_t> category_bits;
  std::vector<double> share_left;  // of the node's cover
  std::vector<double> value;       // [node][width]

  std::size_t size() const { return left.size(); }
  bool is_leaf(std::size_t node) const { return left[node] < 0; }
  bool is_categorical(std::size_t node) const {
    return category_start[node] != forest::no_categories;
  }

  bool goes_left(std::size_t node, double x) const {
    const bool left_if_missing = missing_left[node] != 0;
    if (!is_categorical(node)) {
      return forest::goes_left(x, threshold[node], left_if_missing, nullptr);
    }
    // A code beyond the set goes right.
    const auto start = static_cast<std::size_t>(category_start[node]);
    if (x >= 32 * static_cast<double>(category_bits.size() - start)) return false;
    return forest::goes_left(x, 0, left_if_missing, category_bits.data() + start);
  }
};

// A condition of one split.
struct Step {
  std::int32_t node;
  bool left;
};

// The conditions of a path on one feature.
struct Condition {
  std::int32_t feature;
  double share;  // Π of the shares of training rows along its splits
  std::vector<Step> steps;
};

using Path = std::vector<Condition>;

// Adds a step to the path, and takes it off again.
class PathWalk {
 public:
  explicit PathWalk(const GameTree& tree) : tree_(tree) {}

  const Path& path() const { return path_; }

  void enter(std::size_t node, bool left) {
    const double share = left ? tree_.share_left[node] : 1 - tree_.share_left[node];
    std::size_t at = 0;
    while (at < path_.size() && path_[at].feature != tree_.feature[node]) ++at;
    if (at == path_.size()) path_.push_back({tree_.feature[node], 1.0, {}});
    undo_.push_back({at, path_[at].share});
    path_[at].share *= share;
    path_[at].steps.push_back({static_cast<std::int32_t>(node), left});
  }

  void leave() {
    const Undo undo = undo_.back();
    undo_.pop_back();
    path_[undo.at].share = undo.share;
    path_[undo.at].steps.pop_back();
    if (path_[undo.at].steps.empty()) path_.pop_back();  // it came last
  }

 private:
  struct Undo {
    std::size_t at;
    double share;
  };
  const GameTree& tree_;
  Path path_;
  std::vector<Undo> undo_;
};

}  // namespace spinney::explain
