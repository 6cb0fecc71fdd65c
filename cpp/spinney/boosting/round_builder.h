// The interface of the builders that grow the trees of a booster: TreeBuilder (histograms),
// ExactBuilder (every cut) and VectorBuilder (several outputs).
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "spinney/boosting/boost_options.h"
#include "spinney/boosting/column_sampler.h"
#include "spinney/boosting/split.h"
#include "spinney/boosting/tree_input.h"
#include "spinney/common/watch.h"
#include "spinney/forest/tree.h"
#include "spinney/table/row_matrix.h"

namespace spinney::boosting {

// The training rows of a leaf: rows[0 … end-begin), or 0 … end-1 if rows is null.
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
  RoundBuilder(const RoundBuilder&) = delete;
  RoundBuilder& operator=(const RoundBuilder&) = delete;
  virtual ~RoundBuilder() = default;

  // Grows a tree. The value of a node is its leaf weight, its weight the sum of second derivatives,
  // and its impurity such that the weighted decrease is the gain.
  virtual void grow(const TreeInput& input, common::Watch& watch) = 0;

  // out[i] = leaf of rows[i] of a matrix of the builder's kind.
  virtual void find_leaves(const table::RowMatrix& matrix, const common::Row* rows, std::size_t n,
                           common::NodeIndex* out) const = 0;

  forest::Tree& tree() { return tree_; }
  const std::vector<LeafRows>& leaves() const { return leaves_; }
  // Computes leaf weights from the derivatives themselves instead of the packed sums.
  virtual void refine_leaves(const loss::Derivatives& derivatives);
  // Other workers have rows, too, and grow the same trees.
  void set_workers(const Workers& workers) { workers_ = workers; }
  // Sets memory for one packed sum per row. The builder uses it from when it has packed the
  // derivatives, which may be in this memory, until the tree is finished.
  void share_memory(PackedSum* memory) { shared_memory_ = memory; }
  // If codes are stored by row only: number of columns that may be copied, one byte per row each.
  virtual void allow_copies(std::size_t) {}

 protected:
  void clear_tree();
  // Sums of the derivatives of each leaf in fixed point, over the rows of all workers. largest:
  // derivatives of a row, of all workers.
  std::vector<Sums> leaf_sums(const loss::Derivatives& derivatives, const Sums& largest) const;
  // Writes a split on a binned column.
  void write_bin_split(std::size_t node, const table::BinnedColumn& column, const BinSplit& split);
  // Finds leaves by the splits on codes; splits: by node; like: the matrix that has the bins.
  void follow_codes(const table::BinnedMatrix& matrix, const table::BinnedMatrix& like,
                    const std::vector<BinSplit>& splits, const common::Row* rows, std::size_t n,
                    int n_threads, common::NodeIndex* out) const;
  // Sets the values of a node that do not depend on its split.
  void describe(std::size_t node, const Sums& sums, const Bounds& bounds, std::size_t n_rows);

  // Sets the children of a node.
  template <class Node>
  void link_children(const Node& parent) {
    const auto at = static_cast<std::size_t>(parent.index);
    tree_.left[at] = parent.left->index;
    tree_.right[at] = parent.right->index;
    tree_.max_depth = std::max(tree_.max_depth, static_cast<std::int32_t>(parent.left->depth));
  }

  // Writes a split on n categories; goes_left(category).
  template <class GoesLeft>
  void write_category_split(std::size_t node, std::size_t n, const GoesLeft& goes_left) {
    tree_.threshold[node] = std::numeric_limits<double>::quiet_NaN();
    const std::size_t start = tree_.category_bits.size();
    tree_.category_start[node] = static_cast<std::int64_t>(start);
    const std::size_t words = forest::words_for(static_cast<std::int64_t>(n));
    tree_.category_bits.resize(start + 2 * words);
    for (std::size_t category = 0; category < n; ++category) {
      const std::uint32_t bit = 1U << (category % 32);
      if (goes_left(category)) tree_.category_bits[start + category / 32] |= bit;
      tree_.category_bits[start + words + category / 32] |= bit;
    }
  }

  TreeRules rules_;
  RowWeights weights_;
  Workers workers_;
  PackedSum* shared_memory_ = nullptr;
  Sums largest_;  // derivatives of a row, of all workers
  std::vector<LeafRows> leaves_;
  forest::Tree tree_;
};

// A builder for this kind of matrix. n_outputs: weights of a leaf.
std::unique_ptr<RoundBuilder> make_builder(const table::RowMatrix& matrix, std::size_t n_outputs,
                                           const TreeRules& rules, int n_threads);

}  // namespace spinney::boosting
