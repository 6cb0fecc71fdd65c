// Extensions of GCC and Clang that the core uses. Other files do not use compiler builtins.
#pragma once

#include <cstdint>

#if !defined(__GNUC__)
#error "Spinney needs GCC 12 or newer, or Clang 16 or newer."
#endif

// A function that is always inlined: it is compiled for the instruction set of its caller.
#define SPINNEY_INLINE inline __attribute__((always_inline))
// The same for a lambda, between its parameters and its body.
#define SPINNEY_INLINE_LAMBDA __attribute__((always_inline))

#define SPINNEY_PRAGMA(text) _Pragma(#text)
// Before a loop: unroll it `n` times.
#if defined(__clang__)
#define SPINNEY_UNROLL(n) SPINNEY_PRAGMA(clang loop unroll_count(n))
#else
#define SPINNEY_UNROLL(n) SPINNEY_PRAGMA(GCC unroll n)
#endif

namespace spinney::common {

// Loads the cache line of an address that will be read soon. The address may be invalid.
SPINNEY_INLINE void prefetch(const void* address) { __builtin_prefetch(address); }
// The same for data that is read once: it stays out of the first-level cache.
SPINNEY_INLINE void prefetch_second_level(const void* address) {
  __builtin_prefetch(address, 0, 2);
}

struct WideProduct {
  std::uint64_t high;
  std::uint64_t low;
};

// The product of two 64-bit integers in 128 bits.
constexpr WideProduct multiply_wide(std::uint64_t a, std::uint64_t b) {
#if defined(__SIZEOF_INT128__)
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return {static_cast<std::uint64_t>(product >> 64), static_cast<std::uint64_t>(product)};
#else
  constexpr std::uint64_t half = 0xffffffff;
  const std::uint64_t low = (a & half) * (b & half);
  const std::uint64_t middle = (a >> 32) * (b & half) + (low >> 32);
  const std::uint64_t cross = (a & half) * (b >> 32) + (middle & half);
  return {(a >> 32) * (b >> 32) + (middle >> 32) + (cross >> 32), (cross << 32) | (low & half)};
#endif
}

}  // namespace spinney::common
