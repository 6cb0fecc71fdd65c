// Histograms: sums of gradients and Hessians per code of every column.
//
// Both sums share one 64-bit integer: gradients in the upper half (signed), Hessians in the lower
// one. They are scaled so that no sum of rows overflows. Integer sums do not depend on the order of
// their terms, so threads and memory layouts do not change a bit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "spinney/common/compiler.h"
#include "spinney/common/exchange.h"
#include "spinney/common/types.h"
#include "spinney/loss/loss.h"
#include "spinney/table/binned_matrix.h"

namespace spinney::boosting {

using PackedSum = std::int64_t;

SPINNEY_INLINE std::uint32_t hessian_units(PackedSum sum) {
  return static_cast<std::uint32_t>(sum);
}

SPINNEY_INLINE std::int32_t gradient_units(PackedSum sum) {
  return static_cast<std::int32_t>((sum - static_cast<std::int64_t>(hessian_units(sum))) >> 32);
}

// The value of one unit of each sum.
struct PackedScale {
  double gradient = 1;
  double hessian = 1;
  // Largest number of Hessian units of a row with weight 1. If `counts`, it is 1, and sums of
  // Hessians are numbers of rows.
  std::uint32_t most = 1;
  bool counts = false;
  // Over all workers: number of packed rows, and their largest derivatives.
  std::uint64_t n_rows = 0;
  double largest_gradient = 0;
  double largest_hessian = 0;
};

// The workers that share the rows; without an exchange, there is one.
struct Workers {
  common::Exchange* exchange = nullptr;
  std::uint64_t n_rows =
      0;  // upper bound over all workers; with RowWeights::repeats, repeated rows
};

// Weights of rows. Integer weights mean repeated rows, also where rules count rows.
struct RowWeights {
  const double* values = nullptr;  // [row]; null: all are 1
  bool whole = false;              // all are integers
  // Derivatives are rounded before they are multiplied by the weight, so that sums have the bits of
  // repeated rows. Only for a limited number of repeated rows, because the units become coarser.
  bool repeats = false;
};

// Packs the derivatives of rows[0 … n), or of rows 0 … n-1 if `rows` is null, into out[0 … n).
// counts: all Hessians are 1, so their sums are numbers of rows. Workers get the same scale.
PackedScale pack_gradients(const loss::Derivatives& of, const RowWeights& weights,
                           const common::Row* rows, std::size_t n, bool counts, int n_threads,
                           const Workers& workers, PackedSum* out);

// Packs the derivatives of the rows by row: out[row] for all n_table_rows rows, zero for rows that
// are not in the list, whose derivatives are set to zero, too. Derivatives in blocks may be packed
// where they are.
PackedScale pack_at_rows(const loss::Derivatives& of, const RowWeights& weights,
                         const common::Row* rows, std::size_t n, std::size_t n_table_rows,
                         bool counts, int n_threads, const Workers& workers, PackedSum* out);

// Packed derivatives of a list of rows: in the order of the list, or by row.
struct RowSums {
  const PackedSum* packed = nullptr;
  bool by_row = false;
};

// Sums packed derivatives per code.
class HistogramBuilder {
 public:
  HistogramBuilder(const table::BinnedMatrix& matrix, int n_threads)
      : matrix_(matrix),
        n_threads_(n_threads),
        of_thread_(static_cast<std::size_t>(std::max(1, n_threads) - 1)) {}

  // The histogram of n rows, 0 … n-1 if null. out: matrix.n_codes() sums.
  void build(const common::Row* rows, const RowSums& sums, std::size_t n, PackedSum* out);

 private:
  const table::BinnedMatrix& matrix_;
  int n_threads_;
  std::vector<std::vector<PackedSum>> of_thread_;  // for all threads but the first
};

}  // namespace spinney::boosting
