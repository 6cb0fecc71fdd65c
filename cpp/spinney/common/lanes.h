// Eight numbers at once. Sums over rows run in eight lanes whatever the instruction set, and are
// added up in one order in the end, so that all give the same bits.
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
