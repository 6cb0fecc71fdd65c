// Shapley values of a part of a tree, looked up by the sides of a few splits.
//
// A part is a subtree: its bits are the conditions of the path that leads to it, and its splits. A
// table of 2^bits patterns has the Shapley values of all its leaves together. A row thus costs one
// look-up, and one addition per feature, for any number of leaves. A part that needs too many bits
// is split up; leaves with too many bits are left to a walk.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/explain/game_tree.h"
#include "spinney/explain/row_values.h"

namespace spinney::explain {

// The position of a feature, or of a pair of features, in the explanation of a row.
struct OutputLayout {
  std::size_t n_features;
  std::size_t n_outputs;
  bool interactions;  // pairs, the smaller feature first; zero below the diagonal

  std::size_t of(std::int32_t feature) const {
    return static_cast<std::size_t>(feature) * n_outputs;
  }
  std::size_t of(std::int32_t one, std::int32_t other) const {
    const std::int32_t low = one < other ? one : other;
    const std::int32_t high = one < other ? other : one;
    return (static_cast<std::size_t>(low) * n_features + static_cast<std::size_t>(high)) *
           n_outputs;
  }
  std::size_t per_row() const { return n_features * (interactions ? n_features : 1) * n_outputs; }
};

struct PatternTable {
  std::vector<std::vector<Step>> bits;  // a bit is set if a row takes all its steps
  std::vector<std::uint32_t> position;
  std::vector<double> table;  // [pattern][position]
};

struct TableLimits {
  std::size_t merged = 8;  // bits of a part of several leaves
  std::size_t leaf = 8;    // bits of a leaf alone
  std::size_t bytes = std::size_t{1}
                      << 24;  // of all tables of a tree: the limits fall until they fit
};

struct TreePlan {
  std::vector<PatternTable> tables;
  std::vector<std::uint8_t> walked;  // nodes above leaves without a table, and these leaves
  bool any_walked() const { return walked[0] != 0; }
};

// background: rows that decide instead of the training rows, or null.
TreePlan plan_tree(const GameTree& tree, const TableLimits& limits, const RowValues* background,
                   const OutputLayout& layout);

// Adds the values in the tables for n rows to out; scratch is reused from call to call.
struct TableScratch {
  std::vector<std::uint8_t> sides;
  std::vector<std::uint16_t> pattern;
  std::vector<std::uint8_t> meets;
};
void add_tables(const GameTree& tree, const TreePlan& plan, const RowValues& rows,
                TableScratch& scratch, std::size_t per_row, double* out);

// 1 where a row goes left.
void find_sides(const GameTree& tree, std::size_t node, const RowValues& rows, std::uint8_t* out);

}  // namespace spinney::explain
