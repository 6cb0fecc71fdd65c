// Rows on their way through the trees of a forest. A block of rows is read once and goes through
// all trees, in their order, so sums do not depend on threads.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "spinney/forest/forest.h"
#include "spinney/table/table.h"

namespace spinney::serving {

// leaf[i] = number of the leaf of tree that row i reaches; rows are `stride` values apart.
template <class Value>
void descend(const forest::CompactTree& tree, const Value* rows, std::size_t stride, std::size_t n,
             bool may_miss, std::uint32_t* leaf);

// Calls body(first, n, tree, leaves) for blocks of rows and trees; for one block the trees come in
// their order, on one thread.
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

// The mean number of questions that part a row from n − 1 others at random.
double mean_path_length(double n);

// Isolation: sums[row] = how deep the row's leaves lie, and how much deeper their rows would have
// been parted on average.
void sum_path_lengths(const forest::Forest& forest, const table::Table& table, int n_threads,
                      double* sums);

// out[tree * n_features + feature] = share of the feature in the tree's decrease of the impurity.
void impurity_importances(const forest::Forest& forest, int n_threads, double* out);

// out[row * width … ) = sum over the trees of the leaves' values, or of their votes.
void sum_predictions(const forest::Forest& forest, const table::Table& table, bool hard_votes,
                     int n_threads, double* out);

// Adds a leaf's values, or its vote, to out.
void add_leaf(const forest::CompactTree& tree, const forest::LeafShape& shape, bool hard_vote,
              std::size_t leaf, double* out);

}  // namespace spinney::serving
