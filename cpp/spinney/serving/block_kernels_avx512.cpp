#include "spinney/serving/block_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define SPINNEY_TARGET __attribute__((target("avx512f,avx512bw")))

namespace spinney::serving {

namespace {

using Vector = __m512i;
using Mask = __mmask64;

SPINNEY_TARGET inline Vector load(const std::uint8_t* from) { return _mm512_load_si512(from); }
SPINNEY_TARGET inline void store(Vector v, std::uint8_t* to) { _mm512_store_si512(to, v); }
SPINNEY_TARGET inline Vector splat(std::uint8_t value) {
  return _mm512_set1_epi8(static_cast<char>(value));
}
SPINNEY_TARGET inline Mask equal(Vector a, Vector b) { return _mm512_cmpeq_epi8_mask(a, b); }
SPINNEY_TARGET inline Mask above(Vector a, Vector b) { return _mm512_cmpgt_epu8_mask(a, b); }
SPINNEY_TARGET inline Mask both(Mask a, Mask b) { return a & b; }
SPINNEY_TARGET inline Vector choose(Mask mask, Vector right, Vector left) {
  return _mm512_mask_mov_epi8(left, mask, right);
}
SPINNEY_TARGET inline Vector zeros() { return _mm512_setzero_si512(); }
SPINNEY_TARGET inline Vector ones() { return _mm512_set1_epi64(-1); }
SPINNEY_TARGET inline Vector and_not(Vector a, Vector b) {
  return _mm512_ternarylogic_epi64(a, b, b, 0x30);
}
SPINNEY_TARGET inline Vector either(Vector a, Vector b) { return _mm512_or_si512(a, b); }
SPINNEY_TARGET inline Vector either_both(Vector a, Vector b, Vector c) {
  return _mm512_ternarylogic_epi64(a, b, c, 0xF8);
}
SPINNEY_TARGET inline Vector select(Vector bits, Vector right, Vector left) {
  return _mm512_ternarylogic_epi64(bits, right, left, 0xCA);
}
SPINNEY_TARGET inline std::uint64_t above_bits(const std::uint8_t* codes, std::uint8_t last_left) {
  return above(load(codes), splat(last_left));
}
SPINNEY_TARGET inline std::uint64_t set_bits(const std::uint8_t* codes, int bit) {
  return _mm512_test_epi8_mask(load(codes), splat(static_cast<std::uint8_t>(1 << bit)));
}

struct Positions {
  Vector first;  // of 32 rows
  Vector second;

  SPINNEY_TARGET Positions() : first(zeros()), second(zeros()) {}
  SPINNEY_TARGET void add(std::uint64_t bits, std::uint16_t one) {
    const Vector value = _mm512_set1_epi16(static_cast<short>(one));
    first = _mm512_mask_add_epi16(first, static_cast<__mmask32>(bits), first, value);
    second = _mm512_mask_add_epi16(second, static_cast<__mmask32>(bits >> 32), second, value);
  }
  SPINNEY_TARGET void store(std::uint16_t* to) const {
    _mm512_storeu_si512(to, first);
    _mm512_storeu_si512(to + 32, second);
  }
};

}  // namespace

}  // namespace spinney::serving

#include "spinney/serving/block_kernels_template.h"

namespace spinney::serving {

const BlockKernels avx512_block_kernels{apply, compare, find_positions, 0.015, 0.0015, 0.02};

}  // namespace spinney::serving

#endif
