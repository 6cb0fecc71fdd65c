// The training rows of a tree on histograms, with their packed derivatives: two kinds of
// RowPartition. MovingRows copies the rows of a node to another buffer, with their derivatives.
// RowsInPlace needs half of the memory: rows are permuted in place, and derivatives stay.
#pragma once

#include "spinney/boosting/column_copies.h"
#include "spinney/boosting/histogram_node.h"
#include "spinney/boosting/row_partition.h"
#include "spinney/boosting/tree_input.h"
#include "spinney/common/large_array.h"

namespace spinney::boosting {

class MovingRows {
 public:
  MovingRows(const table::BinnedMatrix& matrix, int n_threads)
      : matrix_(matrix), n_threads_(n_threads) {}

  // Packs the derivatives of a tree's rows; returns their sum. shared_memory: memory for one sum
  // per row, or null; the derivatives may be in it.
  PackedSum start(const TreeInput& input, const Workers& workers, PackedSum* shared_memory);
  void partition(HistogramNode& parent);
  // Restores the rows of a leaf whose descendants were expanded but not needed, in any order.
  void recover(const HistogramNode& node);

  const common::Row* rows_of(const HistogramNode& node) const;
  RowSums sums_of(const HistogramNode& node) const;
  const PackedScale& scale() const { return scale_; }
  void allow_copies(std::size_t) {}

 private:
  const table::BinnedMatrix& matrix_;
  int n_threads_;
  PackedScale scale_;
  bool all_rows_ = false;  // the root's rows are 0 … n-1, not written
  common::LargeArray<common::Row> rows_[2];
  common::LargeArray<PackedSum> memory_[2];
  PackedSum* packed_[2] = {};  // memory_, or shared memory
  bool moves_sums_ = false;    // derivatives move with their rows; else they are by row
  const PackedSum* by_row_ = nullptr;
  common::LargeArray<std::uint8_t> goes_left_;
};

class RowsInPlace {
 public:
  RowsInPlace(const table::BinnedMatrix& matrix, int n_threads)
      : matrix_(matrix), n_threads_(n_threads), copies_(matrix) {}

  PackedSum start(const TreeInput& input, const Workers& workers, PackedSum* shared_memory);
  void partition(HistogramNode& parent);
  void recover(const HistogramNode&) {}

  const common::Row* rows_of(const HistogramNode& node) const;
  RowSums sums_of(const HistogramNode&) const { return {by_row_, true}; }
  const PackedScale& scale() const { return scale_; }
  // Number of columns whose codes may be copied, one byte per row each.
  void allow_copies(std::size_t n_columns) { copies_.allow(n_columns); }

 private:
  const table::BinnedMatrix& matrix_;
  int n_threads_;
  PackedScale scale_;
  bool all_rows_ = false;
  common::LargeArray<common::Row> rows_;
  common::LargeArray<PackedSum> memory_;
  const PackedSum* by_row_ = nullptr;
  ColumnCopies copies_;
};

static_assert(RowPartition<MovingRows, HistogramNode>);
static_assert(RowPartition<RowsInPlace, HistogramNode>);

}  // namespace spinney::boosting
