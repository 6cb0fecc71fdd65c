// The distances of an HNSW index. A space has the vectors of all slots and computes a float that
// orders them by distance from a query. Sums run in sixteen lanes for every instruction set, so
// that all give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "spinney/common/simd.h"

namespace spinney::neighbors {

// The index of a vector in the arrays of an index.
using Slot = std::uint32_t;

using common::Floats16;
using common::Floats4;
constexpr std::size_t n_floats = common::lane_count<Floats16>;

constexpr std::size_t padded(std::size_t n, std::size_t unit) {
  return (n + unit - 1) / unit * unit;
}

SPINNEY_INLINE Floats16 load_floats(const float* from) { return common::load<Floats16>(from); }

SPINNEY_INLINE void prefetch_bytes(const void* from, std::size_t n_bytes) {
  const char* const first = static_cast<const char*>(from);
  // The hardware prefetcher loads further cache lines.
  const std::size_t n = n_bytes < 512 ? n_bytes : 512;
  for (std::size_t i = 0; i < n; i += 64) common::prefetch(first + i);
}

// The term that a pair of coordinates adds to a sum, and the sign of the sum in the order.
struct SquaredDifference {
  static SPINNEY_INLINE Floats16 of(const Floats16& x, const Floats16& y) {
    const Floats16 difference = x - y;
    return difference * difference;
  }
  static constexpr float sign = 1;
};

struct Product {
  static SPINNEY_INLINE Floats16 of(const Floats16& x, const Floats16& y) { return x * y; }
  static constexpr float sign = -1;
};

// Rows are stored without padding. Sixteen floats are read at a time, and those beyond the end of a
// row are masked. The last row needs padding.
template <class Term>
struct FloatSpace {
  using Value = float;
  const float* rows;
  std::size_t stride;  // floats per row

  SPINNEY_INLINE const float* row(Slot slot) const { return rows + slot * stride; }
  SPINNEY_INLINE void prefetch(Slot slot) const { prefetch_bytes(row(slot), stride * 4); }

  SPINNEY_INLINE float distance(const float* x, const float* y) const {
    Floats16 even = {}, odd = {};
    std::size_t j = 0;
    for (; j + 2 * n_floats <= stride; j += 2 * n_floats) {
      even += Term::of(load_floats(x + j), load_floats(y + j));
      odd += Term::of(load_floats(x + j + n_floats), load_floats(y + j + n_floats));
    }
    if (j + n_floats <= stride) {
      even += Term::of(load_floats(x + j), load_floats(y + j));
      j += n_floats;
    }
    if (j < stride) {
      odd += common::keep_first(Term::of(load_floats(x + j), load_floats(y + j)), stride - j);
    }
    return Term::sign * common::sum_lanes(even + odd);
  }

  // Four distances at once, with the same bits as one at a time.
  SPINNEY_INLINE void distances(const float* x, const Slot* slots, float* out) const {
    const float *const a = row(slots[0]), *const b = row(slots[1]), *const c = row(slots[2]),
                       *const d = row(slots[3]);
    Floats16 a0 = {}, a1 = {}, b0 = {}, b1 = {}, c0 = {}, c1 = {}, d0 = {}, d1 = {};
    std::size_t j = 0;
    for (; j + 2 * n_floats <= stride; j += 2 * n_floats) {
      const Floats16 x0 = load_floats(x + j), x1 = load_floats(x + j + n_floats);
      a0 += Term::of(x0, load_floats(a + j));
      b0 += Term::of(x0, load_floats(b + j));
      c0 += Term::of(x0, load_floats(c + j));
      d0 += Term::of(x0, load_floats(d + j));
      a1 += Term::of(x1, load_floats(a + j + n_floats));
      b1 += Term::of(x1, load_floats(b + j + n_floats));
      c1 += Term::of(x1, load_floats(c + j + n_floats));
      d1 += Term::of(x1, load_floats(d + j + n_floats));
    }
    if (j + n_floats <= stride) {
      const Floats16 x0 = load_floats(x + j);
      a0 += Term::of(x0, load_floats(a + j));
      b0 += Term::of(x0, load_floats(b + j));
      c0 += Term::of(x0, load_floats(c + j));
      d0 += Term::of(x0, load_floats(d + j));
      j += n_floats;
    }
    if (j < stride) {
      const Floats16 x1 = load_floats(x + j);
      a1 += common::keep_first(Term::of(x1, load_floats(a + j)), stride - j);
      b1 += common::keep_first(Term::of(x1, load_floats(b + j)), stride - j);
      c1 += common::keep_first(Term::of(x1, load_floats(c + j)), stride - j);
      d1 += common::keep_first(Term::of(x1, load_floats(d + j)), stride - j);
    }
    const Floats4 sums = Term::sign * common::sum_four(a0 + a1, b0 + b1, c0 + c1, d0 + d1);
    common::store(out, sums);
  }
};

using EuclideanSpace = FloatSpace<SquaredDifference>;
using ProductSpace = FloatSpace<Product>;

// Squared Euclidean distances of bytes: integers, so the order of additions does not matter.
struct CodeSpace {
  using Value = std::uint8_t;
  const std::uint8_t* rows;
  std::size_t stride;  // a multiple of 64

  SPINNEY_INLINE const std::uint8_t* row(Slot slot) const { return rows + slot * stride; }
  SPINNEY_INLINE void prefetch(Slot slot) const { prefetch_bytes(row(slot), stride); }

  SPINNEY_INLINE float distance(const std::uint8_t* x, const std::uint8_t* y) const {
    std::int32_t sum = 0;
    // The mask shows the compiler that only whole blocks are read, so it adds no remainder loop.
    const std::size_t n = stride & ~std::size_t{63};
    for (std::size_t j = 0; j < n; ++j) {
      const auto difference = static_cast<std::int16_t>(x[j] - y[j]);
      sum += difference * difference;
    }
    return static_cast<float>(sum);
  }

  SPINNEY_INLINE void distances(const std::uint8_t* x, const Slot* slots, float* out) const {
    for (std::size_t i = 0; i < 4; ++i) out[i] = distance(x, row(slots[i]));
  }
};

}  // namespace spinney::neighbors
