// Squared error of one output: scans over lanes and cells.
#pragma once

#include "spinney/criterion/criterion.h"
#include "spinney/criterion/lanes.h"

namespace spinney::criterion {

// stat: the node's weight and sum. integral: weights are integers.
void scan_mean_lanes(const double* stat, bool integral, const LaneTask& task, const LaneKeys* keys,
                     LaneBest& best);

CellCut scan_mean_cells(const double* stat, const CellTask& task, std::vector<MeanCell>& cells,
                        std::vector<std::uint32_t>& n_rows);

// For each lane, sums the rows with value <= cut: stats[lane] = weight, sum and one unused number,
// n_rows[lane] = number of rows.
void sum_mean_lanes(const LaneTask& task, const LaneValues* values, const LaneValues& cut,
                    double* stats, common::Row* n_rows);

// The same for one column; returns the number of rows.
common::Row sum_means_below(const RowSpan& rows, const double* values, double cut, double* stat);

}  // namespace spinney::criterion
