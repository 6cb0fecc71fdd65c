// Squared error over lanes and cells, one output.
#pragma once

#include "spinney/criterion/criterion.h"
#include "spinney/criterion/lanes.h"

namespace spinney::criterion {

// stat: of the node, weight and sum. `integral`: weights are integers.
void scan_mean_lanes(const double* stat, bool integral, const LaneTask& task, const LaneKeys* keys,
                     LaneBest& best);

CellCut scan_mean_cells(const double* stat, const CellTask& task, std::vector<MeanCell>& cells,
                        std::vector<std::uint32_t>& n_rows);

// stats[lane] = weight and sum of the rows whose values are at most those of `cut` (and room for
// one number more); n_rows[lane] = how many they are.
void sum_mean_lanes(const LaneTask& task, const LaneValues* values, const LaneValues& cut,
                    double* stats, common::Row* n_rows);

// The same for one column; returns how many rows they are.
common::Row sum_means_below(const RowSpan& rows, const double* values, double cut, double* stat);

}  // namespace spinney::criterion
