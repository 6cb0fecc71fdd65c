// Sums of gradients and second derivatives per code of every column.
//
// Both sums share one 64-bit integer: gradients in the upper half (signed), second derivatives in
// the lower one. They are scaled so that neither can overflow, whatever rows come together, and
// since integers add up to the same in any order, threads and layouts do not change a bit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "spinney/common/dispatch.h"
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

// What a unit of either sum stands for.
struct PackedScale {
  double gradient = 1;
  double hessian = 1;
  // Units of the second derivative of a row that counts once are at most this; where `counts`,
  // they are 1.
  std::uint32_t most = 1;
  bool counts = false;
  // Of all workers: rows whose derivatives were packed, and the largest of these.
  std::uint64_t n_rows = 0;
  double largest_gradient = 0;
  double largest_hessian = 0;
};

// The other workers that have rows, if there are any.
struct Workers {
  common::Exchange* exchange = nullptr;
  std::uint64_t n_rows = 0;  // of all workers together, or more; repeated ones where they count so
};

// Weights of rows. Whole numbers stand for repeated rows, and rules that count rows count them so.
struct RowWeights {
  const double* values = nullptr;  // [row]; null: all are 1
  bool whole = false;
  // Derivatives are rounded to integers before they are multiplied by the weight, not after: sums
  // then have the bits of those of the repeated rows. Only where these are few, since the integers
  // are the smaller the more rows there are.
  bool repeats = false;
};

// Packs the derivatives of rows[0 … n) (of all rows if `rows` is null) into out[0 … n). If
// `counts`, all second derivatives are 1, and sums of them are numbers of rows. The scale is that
// of the rows of all workers.
PackedScale pack_gradients(const loss::Derivatives& of, const RowWeights& weights,
                           const common::Row* rows, std::size_t n, bool counts, int n_threads,
                           const Workers& workers, PackedSum* out);

// The same for rows whose sums are to lie at their places among n_places; those of other rows are
// zero, and so are their derivatives afterwards. Derivatives in blocks may lie there themselves.
PackedScale pack_at_rows(const loss::Derivatives& of, const RowWeights& weights,
                         const common::Row* rows, std::size_t n, std::size_t n_places, bool counts,
                         int n_threads, const Workers& workers, PackedSum* out);

// Packed derivatives of a list of rows: one after the other, or each at the place of its row.
struct RowSums {
  const PackedSum* packed = nullptr;
  bool by_row = false;
};

// Adds up packed derivatives per code.
class HistogramBuilder {
 public:
  HistogramBuilder(const table::BinnedMatrix& matrix, int n_threads)
      : matrix_(matrix),
        n_threads_(n_threads),
        of_worker_(static_cast<std::size_t>(std::max(1, n_threads) - 1)) {}

  // Of n rows, null if they are 0 … n-1. out has matrix.n_codes() places.
  void build(const common::Row* rows, const RowSums& sums, std::size_t n, PackedSum* out);

 private:
  const table::BinnedMatrix& matrix_;
  int n_threads_;
  std::vector<std::vector<PackedSum>> of_worker_;  // of all but the first
};

}  // namespace spinney::boosting
