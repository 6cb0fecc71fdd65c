#include "spinney/serving/block_kernels.h"

#include "spinney/common/compiler.h"

#if defined(__aarch64__)
#include <arm_neon.h>

#define SPINNEY_TARGET

namespace spinney::serving {

namespace {

using Vector = uint8x16_t;
using Mask = uint8x16_t;

inline Vector load(const std::uint8_t* from) { return vld1q_u8(from); }
inline void store(Vector v, std::uint8_t* to) { vst1q_u8(to, v); }
inline Vector splat(std::uint8_t value) { return vdupq_n_u8(value); }
inline Vector zeros() { return vdupq_n_u8(0); }
inline Vector ones() { return vdupq_n_u8(255); }
inline Mask equal(Vector a, Vector b) { return vceqq_u8(a, b); }
inline Mask above(Vector a, Vector b) { return vcgtq_u8(a, b); }
inline Mask both(Mask a, Mask b) { return vandq_u8(a, b); }
inline Vector choose(Mask mask, Vector right, Vector left) { return vbslq_u8(mask, right, left); }
inline Vector and_not(Vector a, Vector b) { return vbicq_u8(a, b); }
inline Vector either(Vector a, Vector b) { return vorrq_u8(a, b); }
inline Vector either_both(Vector a, Vector b, Vector c) { return either(a, both(b, c)); }
inline Vector select(Vector bits, Vector right, Vector left) { return vbslq_u8(bits, right, left); }

// One bit of each byte of a mask: keeps bit i % 8 of byte i, then adds neighbours until eight bytes
// are one.
inline std::uint64_t mask_bits(Mask a, Mask b, Mask c, Mask d) {
  const Vector lane_bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
  const Vector ab = vpaddq_u8(both(a, lane_bit), both(b, lane_bit));
  const Vector cd = vpaddq_u8(both(c, lane_bit), both(d, lane_bit));
  const Vector all = vpaddq_u8(ab, cd);
  return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(all, all)), 0);
}

inline std::uint64_t above_bits(const std::uint8_t* codes, std::uint8_t last_left) {
  const Vector last = splat(last_left);
  return mask_bits(above(load(codes), last), above(load(codes + 16), last),
                   above(load(codes + 32), last), above(load(codes + 48), last));
}
inline std::uint64_t set_bits(const std::uint8_t* codes, int bit) {
  const Vector tested = splat(static_cast<std::uint8_t>(1 << bit));
  return mask_bits(vtstq_u8(load(codes), tested), vtstq_u8(load(codes + 16), tested),
                   vtstq_u8(load(codes + 32), tested), vtstq_u8(load(codes + 48), tested));
}

struct Positions {
  uint16x8_t v[8];  // of 8 rows each

  Positions() {
    for (uint16x8_t& each : v) each = vdupq_n_u16(0);
  }
  void add(std::uint64_t bits, std::uint16_t one) {
    constexpr std::uint16_t bit_of_lane[] = {1, 2, 4, 8, 16, 32, 64, 128};
    const uint16x8_t lane_bit = vld1q_u16(bit_of_lane);
    const uint16x8_t value = vdupq_n_u16(one);
    SPINNEY_UNROLL(8)
    for (int i = 0; i < 8; ++i) {
      const uint16x8_t all = vdupq_n_u16(static_cast<std::uint16_t>(bits >> (8 * i) & 255));
      v[i] = vorrq_u16(v[i], vandq_u16(vtstq_u16(all, lane_bit), value));
    }
  }
  void store(std::uint16_t* to) const {
    for (int i = 0; i < 8; ++i) vst1q_u16(to + 8 * i, v[i]);
  }
};

}  // namespace

}  // namespace spinney::serving

#include "spinney/serving/block_kernels_template.h"

namespace spinney::serving {

const BlockKernels neon_block_kernels{apply, compare, find_positions, 0.06, 0.0045, 0.2};

}  // namespace spinney::serving

#endif
