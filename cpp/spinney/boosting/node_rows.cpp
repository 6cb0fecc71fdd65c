#include "spinney/boosting/node_rows.h"

#include <algorithm>
#include <numeric>

namespace spinney::boosting {

using common::Row;

namespace {

// Nodes with more rows read codes by column, smaller ones by row: the codes of a row share a cache
// line with those that the histogram reads next.
constexpr std::size_t by_row_limit = 8192;
// The derivatives of up to this many rows fit into the cache, so they need not move.
constexpr std::size_t rows_with_cached_sums = 131'072;

// by_column: codes of the split's column, one per row, or null to read them by row.
CodeSides sides_of(const table::BinnedMatrix& matrix, const BinSplit& split,
                   const std::uint8_t* by_column) {
  const table::BinnedColumn& column = matrix.column(split.feature);
  const bool by_row = by_column == nullptr;
  CodeSides sides{by_row ? matrix.row_codes() + column.slot : by_column,
                  by_row ? matrix.stride() : 1, by_row};
  std::array<std::uint8_t, 256>& left = sides.left;
  if (by_row && column.bundled) {
    for (std::size_t c = 0; c < column.code_of.size(); ++c) {
      left[c] = split.goes_left(column.code_of[c], column.missing_code()) ? 1 : 0;
    }
  } else if (split.categorical) {
    for (std::uint32_t c = 0; c < column.n_codes(); ++c) {
      left[c] = split.goes_left(c, column.missing_code()) ? 1 : 0;
    }
  } else {
    std::fill_n(left.begin(), split.code + 1, std::uint8_t{1});
    if (column.has_missing) left[column.missing_code()] = split.missing_left ? 1 : 0;
  }
  return sides;
}

void set_rows(HistogramNode& parent, std::size_t n_left, int buffer) {
  parent.was_partitioned = true;
  parent.left->begin = parent.begin;
  parent.left->end = parent.right->begin = parent.begin + n_left;
  parent.right->end = parent.end;
  parent.left->buffer = parent.right->buffer = buffer;
}

}  // namespace

PackedSum MovingRows::start(const TreeInput& input, const Workers& workers,
                            PackedSum* shared_memory) {
  const std::size_t n = input.n_rows;
  all_rows_ = input.rows == nullptr;
  for (auto& rows : rows_) rows.resize(n);
  if (!all_rows_) std::copy(input.rows, input.rows + n, rows_[0].begin());
  goes_left_.resize(n);
  moves_sums_ = matrix_.n_rows() > rows_with_cached_sums;
  // Derivatives of some rows that are kept by row are packed into the other array first.
  const bool scatters = !moves_sums_ && !all_rows_;
  common::LargeArray<PackedSum>& packed = memory_[scatters ? 1 : 0];
  packed.resize(n);
  if (moves_sums_ && shared_memory == nullptr) memory_[1].resize(n);
  scale_ = pack_gradients(input.derivatives, input.weights, input.rows, n, input.constant_hessian,
                          n_threads_, workers, packed.data());
  if (scatters) {
    memory_[0].resize(matrix_.n_rows());
    for (std::size_t i = 0; i < n; ++i) memory_[0][input.rows[i]] = packed[i];
  }
  by_row_ = memory_[0].data();
  packed_[0] = memory_[0].data();
  packed_[1] = shared_memory != nullptr ? shared_memory : memory_[1].data();
  return std::accumulate(packed.data(), packed.data() + n, PackedSum{0});
}

const Row* MovingRows::rows_of(const HistogramNode& node) const {
  if (all_rows_ && node.depth == 0) return nullptr;
  return rows_[node.buffer].data() + node.begin;
}

RowSums MovingRows::sums_of(const HistogramNode& node) const {
  if (!moves_sums_) return {by_row_, true};
  return {packed_[node.buffer] + node.begin, false};
}

void MovingRows::partition(HistogramNode& parent) {
  const std::size_t n = parent.n_rows();
  const bool are_all = rows_of(parent) == nullptr;
  const int other = 1 - parent.buffer;
  const CodeSides sides =
      sides_of(matrix_, parent.split,
               n > by_row_limit || are_all ? matrix_.codes(parent.split.feature) : nullptr);
  const RowsAndSums from{are_all ? nullptr : rows_[parent.buffer].data() + parent.begin,
                         moves_sums_ ? packed_[parent.buffer] + parent.begin : nullptr};
  const RowsAndSums to{rows_[other].data() + parent.begin,
                       moves_sums_ ? packed_[other] + parent.begin : nullptr};
  const std::size_t n_left =
      partition_rows(sides, from, n, n_threads_, goes_left_.data() + parent.begin, to);
  set_rows(parent, n_left, other);
}

void MovingRows::recover(const HistogramNode& node) {
  bool overwritten = false;
  for (const HistogramNode* const child : {node.left, node.right}) {
    if (child->expanded) recover(*child);
    overwritten |= child->was_partitioned;
  }
  if (!overwritten) return;
  const Row* const from = rows_[1 - node.buffer].data();
  std::copy(from + node.begin, from + node.end, rows_[node.buffer].data() + node.begin);
}

PackedSum RowsInPlace::start(const TreeInput& input, const Workers& workers, PackedSum*) {
  const std::size_t n = input.n_rows;
  all_rows_ = input.rows == nullptr;
  rows_.resize(n);
  if (!all_rows_) std::copy(input.rows, input.rows + n, rows_.begin());
  const std::size_t n_packed = matrix_.n_rows();
  if (!input.derivatives.in_blocks) memory_.resize(n_packed);
  PackedSum* const packed = input.derivatives.in_blocks
                                ? reinterpret_cast<PackedSum*>(input.derivatives.gradient)
                                : memory_.data();
  scale_ = pack_at_rows(input.derivatives, input.weights, input.rows, n, n_packed,
                        input.constant_hessian, n_threads_, workers, packed);
  by_row_ = packed;
  return std::accumulate(packed, packed + n_packed, PackedSum{0});
}

const Row* RowsInPlace::rows_of(const HistogramNode& node) const {
  if (all_rows_ && node.depth == 0) return nullptr;
  return rows_.data() + node.begin;
}

void RowsInPlace::partition(HistogramNode& parent) {
  const std::size_t n = parent.n_rows();
  const bool are_all = rows_of(parent) == nullptr;
  const CodeSides sides = sides_of(
      matrix_, parent.split,
      n > by_row_limit || are_all ? copies_.codes(parent.split.feature, n, n_threads_) : nullptr);
  const std::size_t n_left =
      partition_in_place(sides, rows_.data() + parent.begin, n, are_all, n_threads_);
  set_rows(parent, n_left, 0);
}

}  // namespace spinney::boosting
