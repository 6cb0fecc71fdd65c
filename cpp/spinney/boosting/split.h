// The best split of a node, from its histogram, by the second-order objective. With sums G and H of
// gradients and Hessians, the weight of a leaf is −G/(H+λ) and its objective is −G²/(H+λ)/2. The
// gain of a split is the objective of the node minus those of its children, minus γ.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "spinney/boosting/histogram.h"
#include "spinney/boosting/split_rules.h"

namespace spinney::boosting {

// A gain below this fraction of the node's objective is a rounding error.
constexpr double rounding_share = 1e-12;

// Bounds of a leaf's weight, from monotonic constraints of the splits above it.
struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};

struct Sums {
  double gradient = 0;
  double hessian = 0;
};

SPINNEY_INLINE Sums unpack(PackedSum sum, const PackedScale& scale) {
  return {static_cast<double>(gradient_units(sum)) * scale.gradient,
          static_cast<double>(hessian_units(sum)) * scale.hessian};
}

// The weight of a leaf with these sums.
double leaf_weight(const Sums& sums, double l1, double l2, const Bounds& bounds);

inline double leaf_weight(const Sums& sums, const SplitRules& rules, const Bounds& bounds) {
  return leaf_weight(sums, rules.l1_regularization, rules.l2_regularization, bounds);
}

// Bounds of the children of a node that is split on a column with a monotonic constraint.
void tighten_bounds(std::int8_t sign, const Sums& left, const Sums& right, const SplitRules& rules,
                    Bounds& left_bounds, Bounds& right_bounds);

struct BinSplit {
  double gain = -std::numeric_limits<double>::infinity();
  std::uint32_t feature = 0;
  std::uint32_t code = 0;    // numeric: codes up to this one go left
  bool categorical = false;  // codes in left_codes go left
  bool missing_left = false;
  PackedSum left = 0;  // sums of the left side
  std::array<std::uint64_t, 4> left_codes{};

  bool found() const { return gain > 0; }
  bool goes_left(std::uint32_t c, std::uint32_t missing_code) const {
    if (c == missing_code) return missing_left;
    return categorical ? ((left_codes[c / 64] >> (c % 64)) & 1) != 0 : c <= code;
  }
};

struct NodeToSplit {
  const PackedSum* histogram = nullptr;  // null: few rows, which are summed column by column
  RowSums sums;                          // derivatives of the rows
  PackedSum total = 0;
  std::size_t n_rows = 0;             // of this worker
  double n_counted = 0;               // rows, repeated by integer weights
  const common::Row* rows = nullptr;  // null: 0 … n_rows-1
  RowWeights weights;
  PackedScale scale;
  const std::uint8_t* allowed = nullptr;  // flag of each column; null: all
  Bounds bounds;
};

// NodeToSplit::allowed of flags, which are empty if all columns are allowed.
inline const std::uint8_t* marks(const std::vector<std::uint8_t>& allowed) {
  return allowed.empty() ? nullptr : allowed.data();
}

// For nodes of at most this many rows, summing the rows column by column is faster than a
// histogram.
constexpr std::size_t few_node_rows = 96;

// Estimated time of the search for a node's split, in nanoseconds.
double split_work(const table::BinnedMatrix& matrix, std::size_t n_rows, bool by_histogram);

// SplitRules::cuts if all rows have weight 1.
std::vector<std::array<std::uint32_t, 2>> useful_cuts(const table::BinnedMatrix& matrix,
                                                      std::size_t min_rows);

BinSplit find_split(const table::BinnedMatrix& matrix, const NodeToSplit& node,
                    const PackedScale& scale, const SplitRules& rules, int n_threads);

// A split, and whether a side may have too few rows: Hessians give only a bound of their number.
struct Candidate {
  BinSplit split;
  bool uncertain = false;
};

// The split of a node whose rows several workers share. Its histogram, total and n_counted are sums
// over all workers; its rows are those of this worker.
struct OpenSplit {
  std::vector<Candidate> best;  // of each column
  BinSplit split;               // the best of them
  // Columns whose rows must be counted if the split leaves too few rows on a side. Empty: the split
  // leaves enough.
  std::vector<std::uint32_t> doubts;
};

OpenSplit find_open_split(const table::BinnedMatrix& matrix, const NodeToSplit& node,
                          const PackedScale& scale, const SplitRules& rules, int n_threads);

// Counts this worker's rows of each code of the columns in doubt, 256 counts per column.
void count_doubts(const table::BinnedMatrix& matrix, const NodeToSplit& node,
                  const PackedScale& scale, const SplitRules& rules, const OpenSplit& open,
                  std::int64_t* out);

// Chooses the split given the counts of all workers. The new split may have doubts, too.
void settle_doubts(const table::BinnedMatrix& matrix, const NodeToSplit& node,
                   const PackedScale& scale, const SplitRules& rules, const std::int64_t* counts,
                   OpenSplit& open);

}  // namespace spinney::boosting
