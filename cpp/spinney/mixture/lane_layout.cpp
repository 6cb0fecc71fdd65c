#include "spinney/mixture/lane_layout.h"

#include <algorithm>

namespace spinney::mixture {

namespace {

// Element (a, b), a ≤ b, of the tiles on and above the diagonal.
class TileReader {
 public:
  TileReader(const double* tiles, std::size_t n_columns)
      : tiles_(tiles), n_sides_((n_columns + tile_side - 1) / tile_side) {}

  double operator()(std::size_t a, std::size_t b) const {
    const std::size_t s = a / tile_side, t = b / tile_side;
    const std::size_t tile = s * n_sides_ - s * (s + 1) / 2 + t;
    return tiles_[(tile * tile_side + a % tile_side) * tile_side + b % tile_side];
  }

 private:
  const double* tiles_;
  std::size_t n_sides_;
};

void unpack_products(const TileReader& tiles, std::size_t d, double* out) {
  for (std::size_t a = 0; a < d; ++a) {
    for (std::size_t b = a; b < d; ++b) out[a * d + b] = out[b * d + a] = tiles(a, b);
  }
}

}  // namespace

Moments LaneLayout::unpack(const double* sums) const {
  Moments out;
  out.log_likelihood = *sums++;
  out.counts.resize(k);
  out.sums.resize(k * d);
  const std::size_t matrix = covariance_type == CovarianceType::diag ? d : d * d;
  out.products.resize(covariance_type == CovarianceType::tied ? matrix : k * matrix);
  for (std::size_t c = 0; c < k; ++c) {
    if (covariance_type == CovarianceType::full) {
      const TileReader tiles(sums, d + 1);
      out.counts[c] = tiles(d, d);
      for (std::size_t f = 0; f < d; ++f) out.sums[c * d + f] = tiles(f, d);
      unpack_products(tiles, d, out.products.data() + c * matrix);
    } else {
      out.counts[c] = sums[0];
      std::copy(sums + 1, sums + 1 + d, out.sums.data() + c * d);
      if (covariance_type == CovarianceType::diag) {
        std::copy(sums + 1 + d, sums + 1 + 2 * d, out.products.data() + c * d);
      }
    }
    sums += sums_per_component();
  }
  if (covariance_type == CovarianceType::tied) {
    unpack_products(TileReader(sums, d + 1), d, out.products.data());
    sums += tile_sums();
    out.overlaps.assign(k * k, 0.0);
    for (std::size_t a = 0; a < k; ++a) {
      for (std::size_t b = 0; b < a; ++b, ++sums) {
        out.overlaps[a * k + b] = out.overlaps[b * k + a] = *sums;
      }
    }
  }
  return out;
}

}  // namespace spinney::mixture
