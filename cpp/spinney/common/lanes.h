// Vectors of eight doubles. Sums over rows use eight lanes with every instruction set, and the
// lanes are added in one order, so that all sets give the same bits. New code uses simd.h.
#pragma once

#include <cstddef>

#include "spinney/common/dispatch.h"

namespace spinney::common {

inline constexpr std::size_t n_lanes = 8;

using Lanes = double __attribute__((vector_size(64)));

SPINNEY_INLINE Lanes load(const double* from) {
  Lanes out;
  __builtin_memcpy(&out, from, sizeof(out));
  return out;
}

SPINNEY_INLINE void store(double* to, const Lanes& values) {
  __builtin_memcpy(to, &values, sizeof(values));
}

SPINNEY_INLINE double add_up_lanes(const double* v) {
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

}  // namespace spinney::common
