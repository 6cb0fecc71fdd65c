// The order of the sums of a pass: the log-likelihood, the sums of each component and, for a tied
// covariance, the products and overlaps.
#pragma once

#include <cstddef>

#include "spinney/mixture/block_kernels.h"
#include "spinney/mixture/passes.h"

namespace spinney::mixture {

// Sizes and offsets in sums; a sum has eight lanes until they are added.
struct LaneLayout {
  CovarianceType covariance_type;
  std::size_t k;  // number of components
  std::size_t d;  // number of features

  std::size_t tile_sums() const { return packed_size(d + 1); }
  std::size_t sums_per_component() const {
    if (covariance_type == CovarianceType::full) return tile_sums();
    return 1 + (covariance_type == CovarianceType::diag ? 2 : 1) * d;
  }
  std::size_t size() const {
    const std::size_t common =
        covariance_type == CovarianceType::tied ? tile_sums() + k * (k - 1) / 2 : 0;
    return 1 + k * sums_per_component() + common;
  }

  Moments unpack(const double* sums) const;
};

}  // namespace spinney::mixture
