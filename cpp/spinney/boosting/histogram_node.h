// A node of a tree that grows on histograms.
#pragma once

#include "spinney/boosting/growth.h"
#include "spinney/boosting/split.h"

namespace spinney::boosting {

struct HistogramNode : GrowingNode<HistogramNode> {
  int buffer = 0;                  // which buffer has its rows, if they move
  PackedSum* histogram = nullptr;  // from the pool; null: few rows, or not needed
  PackedSum total = 0;
  Bounds bounds;
  BinSplit split;
  OpenSplit open;                // several workers: candidates whose sides may be too small
  std::uint64_t n_all = 0;       // rows of all workers
  std::uint64_t n_counted = 0;   // the same, repeated by integer weights
  bool was_partitioned = false;  // its rows were written to the other buffer

  // Whether no count of rows can still change the split.
  bool split_is_certain() const { return open.doubts.empty(); }
};

}  // namespace spinney::boosting
