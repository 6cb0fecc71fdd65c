#include "spinney/serving/block_kernels.h"

#include "spinney/common/compiler.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define SPINNEY_TARGET __attribute__((target("avx2")))

namespace spinney::serving {

namespace {

using Vector = __m256i;
using Mask = __m256i;

SPINNEY_TARGET inline Vector load(const std::uint8_t* from) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(from));
}
SPINNEY_TARGET inline void store(Vector v, std::uint8_t* to) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(to), v);
}
SPINNEY_TARGET inline Vector splat(std::uint8_t value) {
  return _mm256_set1_epi8(static_cast<char>(value));
}
SPINNEY_TARGET inline Vector zeros() { return _mm256_setzero_si256(); }
SPINNEY_TARGET inline Vector ones() { return _mm256_set1_epi8(-1); }
SPINNEY_TARGET inline Mask equal(Vector a, Vector b) { return _mm256_cmpeq_epi8(a, b); }
// There is no comparison of unsigned bytes: a > b unless the smaller one is a.
SPINNEY_TARGET inline Mask at_most(Vector a, Vector b) { return equal(_mm256_min_epu8(a, b), a); }
SPINNEY_TARGET inline Mask above(Vector a, Vector b) {
  return _mm256_andnot_si256(at_most(a, b), ones());
}
SPINNEY_TARGET inline Mask both(Mask a, Mask b) { return _mm256_and_si256(a, b); }
SPINNEY_TARGET inline Vector choose(Mask mask, Vector right, Vector left) {
  return _mm256_blendv_epi8(left, right, mask);
}
SPINNEY_TARGET inline Vector and_not(Vector a, Vector b) { return _mm256_andnot_si256(b, a); }
SPINNEY_TARGET inline Vector either(Vector a, Vector b) { return _mm256_or_si256(a, b); }
SPINNEY_TARGET inline Vector either_both(Vector a, Vector b, Vector c) {
  return either(a, both(b, c));
}
SPINNEY_TARGET inline Vector select(Vector bits, Vector right, Vector left) {
  return either(both(bits, right), and_not(left, bits));
}
SPINNEY_TARGET inline std::uint64_t first_bits(Vector low, Vector high) {
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(low)) |
         std::uint64_t{static_cast<std::uint32_t>(_mm256_movemask_epi8(high))} << 32;
}
SPINNEY_TARGET inline std::uint64_t above_bits(const std::uint8_t* codes, std::uint8_t last_left) {
  const Vector last = splat(last_left);
  return ~first_bits(at_most(load(codes), last), at_most(load(codes + 32), last));
}
SPINNEY_TARGET inline std::uint64_t set_bits(const std::uint8_t* codes, int bit) {
  // Shifts the bit to the top of its byte.
  return first_bits(_mm256_slli_epi16(load(codes), 7 - bit),
                    _mm256_slli_epi16(load(codes + 32), 7 - bit));
}

struct Positions {
  Vector v[4];  // of 16 rows each

  SPINNEY_TARGET Positions() : v{zeros(), zeros(), zeros(), zeros()} {}
  SPINNEY_TARGET void add(std::uint64_t bits, std::uint16_t one) {
    const Vector value = _mm256_set1_epi16(static_cast<short>(one));
    const Vector lane_bit = _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048,
                                              4096, 8192, 16384, static_cast<short>(0x8000));
    SPINNEY_UNROLL(4)
    for (int i = 0; i < 4; ++i) {
      const Vector all = _mm256_set1_epi16(static_cast<short>(bits >> (16 * i)));
      const Vector is_set = _mm256_cmpeq_epi16(both(all, lane_bit), lane_bit);
      v[i] = either(v[i], both(is_set, value));
    }
  }
  SPINNEY_TARGET void store(std::uint16_t* to) const {
    for (int i = 0; i < 4; ++i) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 16 * i), v[i]);
    }
  }
};

}  // namespace

}  // namespace spinney::serving

#include "spinney/serving/block_kernels_template.h"

namespace spinney::serving {

const BlockKernels avx2_block_kernels{apply, compare, find_positions, 0.05, 0.009, 0.12};

}  // namespace spinney::serving

#endif
