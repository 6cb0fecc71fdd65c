// Gini impurity of one output with integer weights: scans over lanes and cells.
#pragma once

#include "spinney/criterion/criterion.h"
#include "spinney/criterion/lanes.h"

namespace spinney::criterion {

constexpr std::uint32_t max_lane_classes = 64;

// stat: the node's weight and class weights.
void scan_gini_lanes(std::uint32_t n_classes, const double* stat, const LaneTask& task,
                     const LaneKeys* keys, LaneBest& best);

// counts is scratch.
CellCut scan_gini_cells(std::uint32_t n_classes, const double* stat, const CellTask& task,
                        std::vector<std::uint32_t>& counts);

// For each lane, sums the rows with value <= cut: stats[lane] = weight and class weights,
// n_rows[lane] = number of rows.
void sum_class_lanes(std::uint32_t n_classes, const LaneTask& task, const LaneValues* values,
                     const LaneValues& cut, double* stats, common::Row* n_rows);

// The same for one column; returns the number of rows.
common::Row sum_classes_below(std::uint32_t n_classes, const RowSpan& rows, const double* values,
                              double cut, double* stat);

void sum_classes(std::uint32_t n_classes, const RowSpan& rows, double* stat);

}  // namespace spinney::criterion
