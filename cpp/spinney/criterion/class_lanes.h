// Gini over lanes, with integer weights and one output.
#pragma once

#include "spinney/criterion/criterion.h"
#include "spinney/criterion/lanes.h"

namespace spinney {

constexpr std::uint32_t max_lane_classes = 64;

struct ClassLanes {
  std::uint32_t n_classes = 2;
  const double* stat = nullptr;         // of the node: weight, class weights
  const double* reciprocals = nullptr;  // of 0 … max_lane_weight
  Row margin = 1;                       // rows that each side must have
};

void scan_gini_lanes(const ClassLanes& node, const LaneKeys* keys, Row n, const LaneRows& rows,
                     LaneBest& best);

// packed[row] is the row's weight (upper 16 bits) and label; counts is scratch.
void scan_gini_cells(const ClassLanes& node, const LaneCells* cells, const Row* rows, Row n,
                     const std::uint32_t* packed, std::size_t n_cells,
                     std::vector<std::uint32_t>& counts, LaneBest& best);

// stats[lane] = weight and class weights of the rows whose masks are set; n_rows[lane] = how many.
void sum_class_lanes(std::uint32_t n_classes, const Row* rows, Row n, const LaneKeys* masks,
                     const std::uint32_t* packed, double* stats, Row* n_rows);

}  // namespace spinney
