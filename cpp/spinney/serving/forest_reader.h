// Predictions of forests. A block of rows is read once and descends all trees in their order, so
// sums do not depend on threads.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "spinney/forest/forest.h"
#include "spinney/table/table.h"

namespace spinney::serving {

// leaf[i] = leaf of row i; rows are `stride` values apart. may_miss: values may be NaN.
template <class Value>
void descend(const forest::CompactTree& tree, const Value* rows, std::size_t stride, std::size_t n,
             bool may_miss, std::uint32_t* leaf);

// Calls body(first, n, tree, leaves) for blocks of rows and trees: for one block, in the order of
// the trees, on one thread.
void visit_leaves(const forest::Forest& forest, const table::Table& table, int n_threads,
                  const std::function<void(std::size_t first, std::size_t n, std::size_t tree,
                                           const std::uint32_t* leaves)>& body);

// The same, with the leaves of all trees of a block at once: leaves[tree * n + i].
void visit_blocks(
    const forest::Forest& forest, const table::Table& table, int n_threads,
    const std::function<void(std::size_t first, std::size_t n, const std::uint32_t* leaves)>& body);

// out[row * n_trees + tree] = index of the row's leaf among the nodes of the tree, in pre-order.
void apply(const forest::Forest& forest, const table::Table& table, int n_threads,
           std::int64_t* out);

// out[row * width + output] = sum, and sum of squares around a centre, of the trees' predictions.
void sum_moments(const forest::Forest& forest, const table::Table& table, const double* centre,
                 int n_threads, double* sums, double* squares);

// The mean number of random splits that separate a row from n − 1 others.
double mean_path_length(double n);

// Isolation forests: sums[row] = sum over the trees of the depth of the row's leaf plus the mean
// path length of its rows.
void sum_path_lengths(const forest::Forest& forest, const table::Table& table, int n_threads,
                      double* sums);

// out[tree * n_features + feature] = fraction of the tree's impurity decrease due to the feature.
void impurity_importances(const forest::Forest& forest, int n_threads, double* out);

// out[row * width + k] = sum over the trees of the leaf values, or of their votes.
void sum_predictions(const forest::Forest& forest, const table::Table& table, bool hard_votes,
                     int n_threads, double* out);

// Adds a leaf's values, or its vote, to out.
void add_leaf(const forest::CompactTree& tree, const forest::LeafShape& shape, bool hard_vote,
              std::size_t leaf, double* out);

}  // namespace spinney::serving
