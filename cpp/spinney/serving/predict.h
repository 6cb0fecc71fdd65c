// Prediction with one tree. Its nodes are packed: 16 bytes per node, siblings side by side, and
// leaves that lead to themselves, so that a step has no branch and many rows descend at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "spinney/common/types.h"
#include "spinney/forest/check_tree.h"
#include "spinney/table/table.h"

namespace spinney::serving {

class Predictor {
 public:
  // Throws InputError unless the arrays are those of one tree.
  explicit Predictor(const forest::TreeView& tree);

  std::size_t n_nodes() const { return parent_.size(); }

  // leaf[row] = index of the leaf in the tree's arrays.
  void apply(const table::Table& table, int n_threads, std::int64_t* leaf) const;
  // out[row * width + k] = values[leaf * width + k].
  void predict(const table::Table& table, int n_threads, const double* values, std::size_t width,
               double* out) const;
  // out[row] = labels[leaf], for instance a class per leaf.
  void predict_labels(const table::Table& table, int n_threads, const std::int64_t* labels,
                      std::int64_t* out) const;
  // The path of each row, root first. Appends to the two arrays of a compressed sparse row matrix
  // (indptr has n_rows + 1 elements).
  void decision_path(const table::Table& table, int n_threads, std::vector<std::int64_t>& indptr,
                     std::vector<std::int64_t>& indices) const;

 private:
  struct PackedNode {
    double threshold;
    std::uint32_t feature;  // with the two flags below
    std::uint32_t child;    // left child; the right one follows it
  };
  static constexpr std::uint32_t missing_left_flag = 1U << 31;
  static constexpr std::uint32_t categorical_flag = 1U << 30;
  static constexpr std::uint32_t feature_mask = categorical_flag - 1;

  template <bool may_miss>
  struct PackedLayout;

  // Calls done(first, n, leaves) for consecutive groups of rows, leaves as packed positions.
  template <class Done>
  void run(const table::Table& table, int n_threads, const Done& done) const;
  template <class Value>
  void descend(const std::vector<PackedNode>& packed, const Value* rows, std::size_t stride,
               std::size_t n, bool may_miss, std::uint32_t* at) const;
  template <class Value>
  std::uint32_t descend_row(const PackedNode* nodes, const Value* row) const;
  void check_columns(const table::Table& table) const;

  std::vector<PackedNode> nodes_;
  std::vector<PackedNode> narrow_nodes_;  // the same, with indices into used_ as features
  std::vector<std::int64_t> original_;    // packed position → index in the tree's arrays
  std::vector<std::int64_t> parent_;      // by index in the tree's arrays
  std::vector<std::uint32_t> bits_;
  std::vector<std::int32_t> used_;         // features of splits, ascending
  std::vector<std::int32_t> categorical_;  // features of categorical splits, ascending
  std::vector<std::size_t> n_bits_;        // categories that the bit sets can hold, of each
  bool has_categories_ = false;
  std::size_t max_depth_ = 0;
  double mean_depth_ = 0;
};

}  // namespace spinney::serving
