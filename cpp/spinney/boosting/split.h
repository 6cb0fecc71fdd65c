// The best question about a node, from its histogram, by the second-order objective: with sums G
// and H of first and second derivatives a leaf's weight is −G/(H+λ), its part of the objective
// −G²/(H+λ)/2, and a question is worth half of what its children gain, less γ.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "spinney/boosting/histogram.h"
#include "spinney/boosting/split_rules.h"

namespace spinney::boosting {

// A gain below this share of what the node takes off the objective is rounding: its rows agree.
constexpr double rounding_share = 1e-12;

// Limits of a leaf's weight that monotone constraints above it set.
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
  std::uint32_t code = 0;    // numeric: codes up to it go left
  bool categorical = false;  // then those of `left_codes` do
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
  const PackedSum* histogram = nullptr;  // null: of few rows, whose sums are made on the way
  RowSums sums;                          // of the rows
  PackedSum total = 0;
  std::size_t n_rows = 0;             // of this worker
  double n_counted = 0;               // rows, whole weights as repeated ones
  const common::Row* rows = nullptr;  // null: 0 … n_rows-1
  RowWeights weights;
  PackedScale scale;
  const std::uint8_t* allowed = nullptr;  // of each column; null: all
  Bounds bounds;
};

// NodeToSplit::allowed of marks that are empty where all columns are allowed.
inline const std::uint8_t* marks(const std::vector<std::uint8_t>& allowed) {
  return allowed.empty() ? nullptr : allowed.data();
}

// Up to here a histogram of all codes costs more than adding up the rows of one column at a time.
constexpr std::size_t few_node_rows = 96;

// Nanoseconds that finding the split of a node takes.
double split_work(const table::BinnedMatrix& matrix, std::size_t n_rows, bool by_histogram);

// SplitRules::cuts for rows that count once each.
std::vector<std::array<std::uint32_t, 2>> useful_cuts(const table::BinnedMatrix& matrix,
                                                      std::size_t min_rows);

BinSplit find_split(const table::BinnedMatrix& matrix, const NodeToSplit& node,
                    const PackedScale& scale, const SplitRules& rules, int n_threads);

// A split that some side might have too few rows for: only counting them tells.
struct Candidate {
  BinSplit split;
  bool unsure = false;
};

// What is known about the questions of a node whose rows lie with several workers; its histogram,
// total and n_counted are those of all of them, its rows those of this one.
struct OpenSplit {
  std::vector<Candidate> best;  // of each column
  BinSplit split;               // the best of them
  // Columns whose rows must be counted if the split leaves a side too few; none: it does not.
  std::vector<std::uint32_t> doubts;
};

OpenSplit find_open_split(const table::BinnedMatrix& matrix, const NodeToSplit& node,
                          const PackedScale& scale, const SplitRules& rules, int n_threads);

// Numbers of this worker's rows of each code of the columns in doubt, 256 each.
void count_doubts(const table::BinnedMatrix& matrix, const NodeToSplit& node,
                  const PackedScale& scale, const SplitRules& rules, const OpenSplit& open,
                  std::int64_t* out);

// Takes those of all workers: another question may be the best one then, and in doubt.
void settle_doubts(const table::BinnedMatrix& matrix, const NodeToSplit& node,
                   const PackedScale& scale, const SplitRules& rules, const std::int64_t* counts,
                   OpenSplit& open);

}  // namespace spinney::boosting
