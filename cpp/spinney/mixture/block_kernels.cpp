#include "spinney/mixture/block_kernels.h"

#include "spinney/common/dispatch.h"
#include "spinney/common/exp.h"
#include "spinney/common/log.h"
#include "spinney/common/simd.h"

namespace spinney::mixture {

using common::dispatch;
using common::Doubles8;
using common::load;
using common::store;

namespace {

constexpr std::size_t rows_at_once = tile_side * n_lanes;
// Larger squared distances, also infinity and NaN, count as this one.
constexpr double farthest = 1e300;

// Computes four columns of Pᵀ d for 32 rows at a time, so that sixteen sums stay in registers.
template <bool keep>
SPINNEY_INLINE void multiply_factor(const double* differences, const double* packed,
                                    std::size_t n_features, double* out) {
  for (std::size_t row = 0; row < block_rows; row += rows_at_once) {
    Doubles8 norms[tile_side] = {};
    const double* p = packed;
    for (std::size_t column = 0; column < n_features; column += tile_side) {
      Doubles8 sums[tile_side][tile_side] = {};
      const double* d = differences + row;
      for (std::size_t i = 0; i < column + tile_side; ++i) {
        for (std::size_t lane = 0; lane < tile_side; ++lane) {
          const Doubles8 values = load<Doubles8>(d + lane * n_lanes);
          for (std::size_t j = 0; j < tile_side; ++j) sums[j][lane] += values * p[j];
        }
        p += tile_side;
        d += block_rows;
      }
      for (std::size_t j = 0; j < tile_side; ++j) {
        for (std::size_t lane = 0; lane < tile_side; ++lane) {
          if constexpr (keep) {
            store(out + (column + j) * block_rows + row + lane * n_lanes, sums[j][lane]);
          } else {
            norms[lane] += sums[j][lane] * sums[j][lane];
          }
        }
      }
    }
    if constexpr (!keep) {
      for (std::size_t lane = 0; lane < tile_side; ++lane) {
        store(out + row + lane * n_lanes, norms[lane]);
      }
    }
  }
}

}  // namespace

void pack_factor(const double* factor, std::size_t n_features, double* packed) {
  for (std::size_t column = 0; column < n_features; column += tile_side) {
    for (std::size_t i = 0; i < column + tile_side; ++i) {
      for (std::size_t j = column; j < column + tile_side; ++j) {
        *packed++ = j < n_features && i <= j ? factor[i * n_features + j] : 0.0;
      }
    }
  }
}

namespace {

SPINNEY_INLINE void subtract_mean_kernel(const double* columns, const double* mean,
                                         std::size_t n_features, double* out) {
  for (std::size_t f = 0; f < n_features; ++f) {
    for (std::size_t row = 0; row < block_rows; row += n_lanes) {
      store(out + row, load<Doubles8>(columns + row) - mean[f]);
    }
    columns += block_rows;
    out += block_rows;
  }
}

}  // namespace

void subtract_mean(const double* columns, const double* mean, std::size_t n_features, double* out) {
  dispatch<subtract_mean_kernel>(columns, mean, n_features, out);
}

namespace {

SPINNEY_INLINE void measure_full_kernel(const double* differences, const double* packed,
                                        std::size_t n_features, double* norms) {
  multiply_factor<false>(differences, packed, n_features, norms);
}

}  // namespace

void measure_full(const double* differences, const double* packed, std::size_t n_features,
                  double* norms) {
  dispatch<measure_full_kernel>(differences, packed, n_features, norms);
}

namespace {

SPINNEY_INLINE void whiten_kernel(const double* differences, const double* packed,
                                  std::size_t n_features, double* out) {
  multiply_factor<true>(differences, packed, n_features, out);
}

}  // namespace

void whiten(const double* differences, const double* packed, std::size_t n_features, double* out) {
  dispatch<whiten_kernel>(differences, packed, n_features, out);
}

namespace {

SPINNEY_INLINE void measure_diagonal_kernel(const double* columns, const double* mean,
                                            const double* scales, std::size_t n_features,
                                            double* norms) {
  for (std::size_t row = 0; row < block_rows; row += rows_at_once) {
    Doubles8 sums[tile_side] = {};
    const double* column = columns + row;
    for (std::size_t f = 0; f < n_features; ++f) {
      const double scale = scales != nullptr ? scales[f] : 1.0;
      for (std::size_t lane = 0; lane < tile_side; ++lane) {
        const Doubles8 scaled = (load<Doubles8>(column + lane * n_lanes) - mean[f]) * scale;
        sums[lane] += scaled * scaled;
      }
      column += block_rows;
    }
    for (std::size_t lane = 0; lane < tile_side; ++lane) {
      store(norms + row + lane * n_lanes, sums[lane]);
    }
  }
}

}  // namespace

void measure_diagonal(const double* columns, const double* mean, const double* scales,
                      std::size_t n_features, double* norms) {
  dispatch<measure_diagonal_kernel>(columns, mean, scales, n_features, norms);
}

namespace {

SPINNEY_INLINE void norms_to_logs_kernel(double offset, double* norms) {
  for (std::size_t row = 0; row < block_rows; ++row) {
    const double norm = norms[row] < farthest ? norms[row] : farthest;  // false for NaN
    norms[row] = offset - 0.5 * norm;
  }
}

}  // namespace

void norms_to_logs(double offset, double* norms) { dispatch<norms_to_logs_kernel>(offset, norms); }

namespace {

SPINNEY_INLINE void normalise_logs_kernel(double* logs, std::size_t n_components,
                                          const double* weights, double* log_densities) {
  double highest[block_rows], total[block_rows];
  for (std::size_t row = 0; row < block_rows; ++row) highest[row] = logs[row];
  for (std::size_t k = 1; k < n_components; ++k) {
    const double* log = logs + k * block_rows;
    for (std::size_t row = 0; row < block_rows; ++row) {
      highest[row] = log[row] > highest[row] ? log[row] : highest[row];
    }
  }
  for (std::size_t row = 0; row < block_rows; ++row) total[row] = 0;
  for (std::size_t k = 0; k < n_components; ++k) {
    double* log = logs + k * block_rows;
    for (std::size_t row = 0; row < block_rows; ++row) {
      const double below = log[row] - highest[row];
      log[row] =
          below > -700.0 ? common::exp(below) : 0.0;  // common::exp does not underflow to zero
      total[row] += log[row];
    }
  }
  for (std::size_t row = 0; row < block_rows; ++row) {
    log_densities[row] = highest[row] + common::log_normal(total[row]);
    total[row] = weights[row] / total[row];
  }
  for (std::size_t k = 0; k < n_components; ++k) {
    double* responsibility = logs + k * block_rows;
    for (std::size_t row = 0; row < block_rows; ++row) responsibility[row] *= total[row];
  }
}

}  // namespace

void normalise_logs(double* logs, std::size_t n_components, const double* weights,
                    double* log_densities) {
  dispatch<normalise_logs_kernel>(logs, n_components, weights, log_densities);
}

namespace {

SPINNEY_INLINE void drop_small_kernel(double least, std::size_t n, double* responsibilities) {
  for (std::size_t i = 0; i < n; ++i)
    responsibilities[i] = responsibilities[i] > least ? responsibilities[i] : 0.0;
}

}  // namespace

void drop_small(double least, std::size_t n, double* responsibilities) {
  dispatch<drop_small_kernel>(least, n, responsibilities);
}

namespace {

SPINNEY_INLINE void add_weighted_kernel(const double* weights, const double* values,
                                        double* lanes) {
  Doubles8 sum = load<Doubles8>(lanes);
  for (std::size_t row = 0; row < block_rows; row += n_lanes) {
    sum += load<Doubles8>(weights + row) * load<Doubles8>(values + row);
  }
  store(lanes, sum);
}

}  // namespace

void add_weighted(const double* weights, const double* values, double* lanes) {
  dispatch<add_weighted_kernel>(weights, values, lanes);
}

namespace {

SPINNEY_INLINE void add_moments_kernel(const double* columns, const double* mean,
                                       const double* responsibilities, std::size_t n_features,
                                       bool squares, double* lanes) {
  Doubles8 count = load<Doubles8>(lanes);
  for (std::size_t row = 0; row < block_rows; row += n_lanes)
    count += load<Doubles8>(responsibilities + row);
  store(lanes, count);
  lanes += n_lanes;
  for (std::size_t f = 0; f < n_features; ++f) {
    // Two independent sums of each kind hide the latency of additions.
    Doubles8 first[2] = {load<Doubles8>(lanes + f * n_lanes), Doubles8{}};
    Doubles8 second[2] = {};
    for (std::size_t row = 0; row < block_rows; row += 2 * n_lanes) {
      for (std::size_t half = 0; half < 2; ++half) {
        const Doubles8 d = load<Doubles8>(columns + row + half * n_lanes) - mean[f];
        const Doubles8 weighted = load<Doubles8>(responsibilities + row + half * n_lanes) * d;
        first[half] += weighted;
        second[half] += weighted * d;
      }
    }
    store(lanes + f * n_lanes, first[0] + first[1]);
    if (squares) {
      double* const to = lanes + (n_features + f) * n_lanes;
      store(to, load<Doubles8>(to) + (second[0] + second[1]));
    }
    columns += block_rows;
  }
}

}  // namespace

void add_moments(const double* columns, const double* mean, const double* responsibilities,
                 std::size_t n_features, bool squares, double* lanes) {
  dispatch<add_moments_kernel>(columns, mean, responsibilities, n_features, squares, lanes);
}

void add_lanes(const double* lanes, std::size_t n_sums, double* out) {
  for (std::size_t i = 0; i < n_sums; ++i) {
    out[i] = common::sum_eight(lanes + i * n_lanes);
  }
}

}  // namespace spinney::mixture
