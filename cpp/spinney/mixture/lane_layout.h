// Where each sum of a pass is: first the log-likelihood, then for each component its sums, then,
// for a common covariance, the products and the overlaps of all.
#pragma once

#include <cstddef>

#include "spinney/mixture/block_kernels.h"
#include "spinney/mixture/passes.h"

namespace spinney::mixture {

// Counted in lanes or, once those are added up, in numbers.
struct LaneLayout {
  CovarianceKind kind;
  std::size_t k;  // components
  std::size_t d;  // features

  std::size_t tile_sums() const { return packed_size(d + 1); }
  std::size_t a_component() const {
    if (kind == CovarianceKind::full) return tile_sums();
    return 1 + (kind == CovarianceKind::diag ? 2 : 1) * d;
  }
  std::size_t size() const {
    const std::size_t common = kind == CovarianceKind::tied ? tile_sums() + k * (k - 1) / 2 : 0;
    return 1 + k * a_component() + common;
  }

  Moments unpack(const double* sums) const;
};

}  // namespace spinney::mixture
