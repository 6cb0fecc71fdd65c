// Squared error over lanes, one output.
#pragma once

#include "spinney/criterion/criterion.h"
#include "spinney/criterion/lanes.h"

namespace spinney {

struct MeanLanes {
  double weight = 0;  // of the node
  double sum = 0;     // of its weighted targets
  const double* reciprocals = nullptr;  // of 0 … the node's weight, if weights are integers
  Row margin = 1;                       // rows that each side must have
};

// A row as the scan reads it.
struct WeightedTarget {
  double wy;
  double w;
};

void scan_mean_lanes(const MeanLanes& node, const LaneKeys* keys, Row n, const LaneRows& rows,
                     LaneBest& best);

// Targets by row: weighted ones, or plain values where every row counts once.
void scan_mean_cells(const MeanLanes& node, const LaneCells* cells, const Row* rows, Row n,
                     const WeightedTarget* weighted, const double* values, std::size_t n_cells,
                     std::vector<MeanCell>& scratch, std::vector<std::uint32_t>& n_rows,
                     LaneBest& best);

// stats[lane] = weight and sum of the rows whose masks are set (and room for one number more);
// n_rows[lane] = how many.
void sum_mean_lanes(const Row* rows, Row n, const LaneKeys* masks, const WeightedTarget* weighted,
                    const double* values, double* stats, Row* n_rows);

}  // namespace spinney
