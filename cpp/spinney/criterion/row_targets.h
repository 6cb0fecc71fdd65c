// Targets and weights in the order of a list of rows. Partitioning a node moves them with its rows,
// so that loops over a node read memory in order.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/common/types.h"

namespace spinney::criterion {

struct MeanTarget {
  double y;
  double w;
};

struct RowTargets {
  std::vector<std::uint32_t> packed;  // classes: weight (upper 16 bits) and label
  std::vector<MeanTarget> means;      // numbers
};

// The rows of one node.
struct RowSpan {
  const common::Row* rows = nullptr;
  const std::uint32_t* packed = nullptr;
  const MeanTarget* means = nullptr;
  common::Row n = 0;
};

constexpr std::uint32_t label_of(std::uint32_t packed) { return packed & 0xffff; }
constexpr std::uint32_t weight_of(std::uint32_t packed) { return packed >> 16; }

}  // namespace spinney::criterion
