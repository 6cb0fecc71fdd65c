// Gini over lanes and cells, with integer weights and one output.
#pragma once

#include "spinney/criterion/criterion.h"
#include "spinney/criterion/lanes.h"

namespace spinney::criterion {

constexpr std::uint32_t max_lane_classes = 64;

// stat: of the node, weight and class weights.
void scan_gini_lanes(std::uint32_t n_classes, const double* stat, const LaneTask& task,
                     const LaneKeys* keys, LaneBest& best);

// counts is scratch.
CellCut scan_gini_cells(std::uint32_t n_classes, const double* stat, const CellTask& task,
                        std::vector<std::uint32_t>& counts);

// stats[lane] = weight and class weights of the rows whose values are at most those of `cut`;
// n_rows[lane] = how many they are.
void sum_class_lanes(std::uint32_t n_classes, const LaneTask& task, const LaneValues* values,
                     const LaneValues& cut, double* stats, common::Row* n_rows);

// The same for one column; returns how many rows they are.
common::Row sum_classes_below(std::uint32_t n_classes, const RowSpan& rows, const double* values,
                              double cut, double* stat);

void sum_classes(std::uint32_t n_classes, const RowSpan& rows, double* stat);

}  // namespace spinney::criterion
