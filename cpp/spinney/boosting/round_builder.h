// What grows the trees of a booster: on histograms (TreeBuilder) or with every cut (ExactBuilder).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "spinney/boosting/boost_options.h"
#include "spinney/boosting/split.h"
#include "spinney/common/random.h"
#include "spinney/common/watch.h"
#include "spinney/table/row_matrix.h"
#include "spinney/tree/tree.h"

namespace spinney::boosting {

// Where the rows of a leaf lie among the builder's rows.
struct LeafRows {
  common::NodeIndex node = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
  const common::Row* rows = nullptr;
  Bounds bounds;
};

class RoundBuilder {
 public:
  explicit RoundBuilder(TreeRules rules) : rules_(std::move(rules)) {}
  virtual ~RoundBuilder() = default;

  // Grows the tree with this number from the given rows (null: all of them) and their gradients.
  // A node's value is its weight, its weight the sum of second derivatives, its impurity such that
  // the weighted decrease is the gain.
  virtual void grow(std::uint64_t number, const common::Row* rows, std::size_t n_rows,
                    const loss::Derivatives& of, const RowWeights& weights, bool constant_hessian,
                    common::Watch& watch) = 0;

  // out[i] = leaf of rows[i] of a matrix of the builder's kind.
  virtual void find_leaves(const table::RowMatrix& matrix, const common::Row* rows, std::size_t n,
                           common::NodeIndex* out) const = 0;

  tree::Tree& tree() { return tree_; }
  const std::vector<LeafRows>& leaves() const { return leaves_; }
  // Leaf weights from the derivatives themselves instead of the packed sums.
  virtual void refine_leaves(const loss::Derivatives& of);
  // Says that other workers have rows, too, and grow the same trees.
  void join(const Company& company) { company_ = company; }
  // Gives memory for a packed sum of each row, which is the builder's own while it grows a tree, as
  // soon as the derivatives, which may lie there, are packed.
  void lend(PackedSum* memory) { lent_ = memory; }
  // Where codes lie row by row only: how many columns may be copied, a byte a row each.
  virtual void allow_copies(std::size_t) {}

 protected:
  // Sums of the derivatives of each leaf, in fixed point, over the rows of all workers, of which
  // none has larger ones than these.
  std::vector<Sums> leaf_sums(const loss::Derivatives& of, const Sums& largest) const;
  // The question of a node about a binned column.
  void write_question(std::size_t at, const table::BinnedColumn& column, const BinSplit& split);
  // Leaves of rows by their codes; `like` has the bins. questions: by node.
  void follow_codes(const table::BinnedMatrix& matrix, const table::BinnedMatrix& like,
                    const std::vector<BinSplit>& questions, const common::Row* rows, std::size_t n,
                    int n_threads, common::NodeIndex* out) const;
  // Values of a node that do not depend on whether it is parted.
  void describe(std::size_t at, const Sums& sums, const Bounds& bounds, std::size_t n_rows);
  // A question about categories; goes_left(category) of n.
  template <class GoesLeft>
  void write_categories(std::size_t at, std::size_t n, const GoesLeft& goes_left) {
    tree_.threshold[at] = std::numeric_limits<double>::quiet_NaN();
    const std::size_t start = tree_.category_bits.size();
    tree_.category_start[at] = static_cast<std::int64_t>(start);
    const std::size_t words = tree::words_for(static_cast<std::int64_t>(n));
    tree_.category_bits.resize(start + 2 * words);
    for (std::size_t category = 0; category < n; ++category) {
      const std::uint32_t bit = 1U << (category % 32);
      if (goes_left(category)) tree_.category_bits[start + category / 32] |= bit;
      tree_.category_bits[start + words + category / 32] |= bit;
    }
  }
  // Limits of the children of a node that asks about a column with a constraint.
  void tighten(std::int8_t sign, const Sums& left, const Sums& right, Bounds& left_bounds,
               Bounds& right_bounds) const;

  // The leaf to be parted next, by the rule of growth; nodes.size() if there is none.
  template <class Node>
  std::size_t next_leaf(const std::vector<Node>& nodes) const {
    std::size_t next = nodes.size();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!nodes[i].split.found()) continue;
      if (next == nodes.size()) {
        next = i;
        continue;
      }
      const Node& best = nodes[next];
      const Node& node = nodes[i];
      const bool earlier =
          rules_.growth == Growth::level_wise
              ? node.depth < best.depth || (node.depth == best.depth && node.index < best.index)
              : node.split.gain > best.split.gain ||
                    (node.split.gain == best.split.gain && node.index < best.index);
      if (earlier) next = i;
    }
    return next;
  }

  // Names of a node's children, by the way to them: known before their turn, unlike an index.
  static std::uint64_t name_of_child(std::uint64_t parent, bool left) {
    return common::combine(parent, left ? 1 : 2);
  }
  // Marks of the columns that a node may ask about; empty: all. name: for the draw.
  std::vector<std::uint8_t> allowed_columns(std::size_t n_features, std::size_t depth,
                                            std::uint64_t name,
                                            const std::vector<std::uint32_t>& path) const;
  void draw_tree_columns(std::size_t n_features);

  TreeRules rules_;
  std::uint64_t number_ = 0;
  RowWeights weights_;
  Company company_;
  PackedSum* lent_ = nullptr;
  Sums largest_;  // derivatives of a row, of all workers
  std::vector<LeafRows> leaves_;
  tree::Tree tree_;

 private:
  void draw(std::vector<std::uint8_t>& columns, double share, std::uint64_t purpose_index) const;

  std::vector<std::uint8_t> tree_columns_;
};

// A builder for the kind of rows that the matrix has.
// n_outputs: weights of a leaf.
std::unique_ptr<RoundBuilder> make_builder(const table::RowMatrix& matrix, std::size_t n_outputs,
                                           const TreeRules& rules, int n_threads);

}  // namespace spinney::boosting
