// The random columns of a node, in batches of eight.
#pragma once

#include <algorithm>
#include <cstddef>

#include "spinney/criterion/lanes.h"
#include "spinney/tree/feature_draw.h"
#include "spinney/tree/node.h"

namespace spinney::tree {

// Columns that are searched together; unused lanes repeat the first.
struct Batch {
  std::size_t feature[criterion::n_lanes];
  std::size_t n = 0;
  bool only_first = false;  // use only the first column that varies: all earlier ones are constant
};

// As in scikit-learn, constant columns count towards max_features, but the draw continues until one
// column varies. Columns that are constant in an ancestor are skipped.
class ColumnDraw {
 public:
  ColumnDraw(std::vector<std::int32_t>& features, FeatureDraw::Swaps& swaps, common::Stream stream,
             std::size_t n_drawn)
      : draw_(features, swaps, stream), n_left_(n_drawn) {}

  // Fills the next batch; returns false after the last one.
  bool next(const Node& node, bool any_varies, Batch& batch) {
    batch.n = 0;
    while (n_left_ > 0 && batch.n < criterion::n_lanes && draw_.has_next()) {
      --n_left_;
      add(node, batch);
    }
    batch.only_first = false;
    if (batch.n == 0 && !any_varies) {
      batch.only_first = true;
      while (batch.n < criterion::n_lanes && draw_.has_next()) add(node, batch);
    }
    if (batch.n == 0) return false;
    for (std::size_t l = batch.n; l < criterion::n_lanes; ++l) batch.feature[l] = batch.feature[0];
    return true;
  }

 private:
  void add(const Node& node, Batch& batch) {
    const auto feature = static_cast<std::size_t>(draw_.next());
    batch.feature[batch.n] = feature;
    batch.n += node.is_constant(feature) ? 0 : 1;
  }

  FeatureDraw draw_;
  std::size_t n_left_;
};

}  // namespace spinney::tree
