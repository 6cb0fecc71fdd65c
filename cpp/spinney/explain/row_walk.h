// Path dependent Shapley values of few rows: each row goes through each tree by itself, and nothing
// is planned. The integral is that of share_walk.h; here the lanes are its quadrature's nodes, not
// rows, so that a single row wastes nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/explain/game_tree.h"
#include "spinney/explain/row_values.h"

namespace spinney::explain {

// Quadratures of up to 32 nodes, each filled up with nodes of no weight to a multiple of the lanes.
class Quadratures {
 public:
  static constexpr std::size_t most_nodes = 32;

  Quadratures();

  // [t, 1 - t, w, w / (1 - t)][node], for paths with this many conditions.
  const double* of(std::size_t n_conditions) const;
  static std::size_t n_vectors(std::size_t n_conditions);
  static bool serves(std::size_t n_conditions) { return n_conditions <= 2 * most_nodes; }

 private:
  std::vector<std::vector<double>> by_nodes_;
};

struct PathSizes {
  std::size_t depth = 0;
  std::size_t n_conditions = 0;  // no path has more
};
PathSizes measure_paths(const GameTree& tree, std::size_t n_features);

struct RowWalkScratch {
  std::vector<double> buffer;
  std::vector<std::int32_t> last;  // of each slot, the level of its last edge on the path, or 0
};

// Adds to lanes[row][slot][n_outputs][8], whose eight numbers add up to what the slot's feature
// gets.
void add_rows(const GameTree& tree, const PathSizes& paths, const Quadratures& quadratures,
              const RowValues& rows, std::size_t n_slots, std::size_t n_outputs,
              RowWalkScratch& scratch, double* lanes);

}  // namespace spinney::explain
