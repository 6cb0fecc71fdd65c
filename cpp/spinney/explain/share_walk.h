// Path dependent Shapley values of the leaves that no table serves, by one walk over the tree for
// sixteen rows at a time.
//
// A feature's weight in all coalitions is an integral: its part of a leaf is
//   value · (o_i - r_i) · ∫ Π_{j≠i} (t·o_j + (1-t)·r_j) dt,
// with o_j ∈ {0, 1} whether the row meets condition j and r_j the share of training rows that do.
// A path of m conditions is a polynomial of degree m-1, for which ⌈m/2⌉ Gauss-Legendre nodes are
// exact. At each node t the products are carried down the tree and the sums over leaves up again;
// at an edge the subtree's sum, divided by the edge's own factor, is what its feature gets there.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/explain/game_tree.h"
#include "spinney/explain/pattern_tables.h"
#include "spinney/explain/row_values.h"

namespace spinney::explain {

// One edge of the tree, to a child that has leaves to walk to.
struct WalkEdge {
  std::int32_t split;     // the parent
  std::int32_t feature;   // its index among the features of the walk
  std::int32_t depth;     // of the child
  std::int32_t previous;  // the edge above with the same feature, or -1: both are one condition
  std::int32_t leaf;      // the node of the leaf it leads to, or -1
  bool left;
};

struct WalkStep {
  std::int32_t edge;
  bool up;  // back from it, after all below
};

struct SharePlan {
  std::vector<WalkEdge> edges;
  std::vector<WalkStep> steps;
  std::vector<std::int32_t> features;  // of the table
  std::size_t n_nodes = 0;             // of the quadrature
  std::size_t depth = 0;
  std::vector<double> weight;     // w / (1-t), and …
  std::vector<double> constants;  // [edge][five][node]: see share_walk.cpp
};

// Empty if the tables cover all leaves; without tables, all leaves are walked to. Reuses the memory
// of the plan.
void plan_walk(const GameTree& tree, const TreePlan* tables, SharePlan& plan);

struct WalkScratch {
  std::vector<double> buffer;
};
void add_walk(const GameTree& tree, const SharePlan& plan, const RowValues& rows,
              const OutputLayout& layout, WalkScratch& scratch, double* out);

// Nodes and weights on [0, 1].
void gauss_legendre(std::size_t n, std::vector<double>& nodes, std::vector<double>& weights);

}  // namespace spinney::explain
