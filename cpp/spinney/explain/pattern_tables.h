// What a part of a tree adds to a row's explanation, looked up by the answers to a few questions.
//
// A part is a subtree: its bits are the conditions of the path that leads to it, and its questions.
// The Shapley values of all its leaves together lie in a table of 2^bits patterns, so that a row
// costs one look-up and one addition a feature, however many leaves there are. A part that needs
// too many bits is divided; leaves whose own path does are left to a walk.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/explain/game_tree.h"
#include "spinney/explain/row_values.h"

namespace spinney::explain {

// Where a feature's, or a pair of features', numbers are in the explanation of a row.
struct Places {
  std::size_t n_features;
  std::size_t n_outputs;
  bool interactions;  // pairs, the smaller feature first; places below the diagonal stay empty

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
  std::vector<std::vector<Step>> bits;  // a bit is set if a row goes along with all its steps
  std::vector<std::uint32_t> place;
  std::vector<double> table;  // [pattern][place]
};

struct TableLimits {
  std::size_t merged = 8;  // bits of a part of several leaves
  std::size_t leaf = 8;    // bits of a leaf alone
  std::size_t bytes = std::size_t{1}
                      << 24;  // of all tables of a tree: the limits fall until they fit
};

struct TreePlan {
  std::vector<PatternTable> tables;
  std::vector<std::uint8_t> walked;  // nodes above leaves that no table serves, and these leaves
  bool any_walked() const { return walked[0] != 0; }
};

// background: rows that decide instead of the training rows, or null.
TreePlan plan_tree(const GameTree& tree, const TableLimits& limits, const RowValues* background,
                   const Places& places);

// Adds what the tables say of n rows to out; scratch is reused from call to call.
struct TableScratch {
  std::vector<std::uint8_t> answers;
  std::vector<std::uint16_t> pattern;
  std::vector<std::uint8_t> meets;
};
void add_tables(const GameTree& tree, const TreePlan& plan, const RowValues& rows,
                TableScratch& scratch, std::size_t per_row, double* out);

// 1 where a row goes left.
void answer(const GameTree& tree, std::size_t node, const RowValues& rows, std::uint8_t* out);

}  // namespace spinney::explain
