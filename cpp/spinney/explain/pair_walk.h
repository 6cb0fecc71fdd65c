// Interventional Shapley values of the leaves that no table serves: each row with each background
// row, along the ways that a mixture of the two can take.
#pragma once

#include "spinney/explain/game_tree.h"
#include "spinney/explain/pattern_tables.h"
#include "spinney/explain/row_values.h"

namespace spinney::explain {

void add_pairs(const GameTree& tree, const TreePlan& plan, const RowValues& rows,
               const RowValues& background, const OutputLayout& layout, double* out);

}  // namespace spinney::explain
