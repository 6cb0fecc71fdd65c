// Counter-based random streams: a draw depends only on seed, purpose, index and counter, and not on
// threads, platform or standard library.
#pragma once

#include <cstdint>

#include "spinney/common/compiler.h"

namespace spinney::common {

// The use of a stream. Two purposes never share a stream, even with the same seed and index.
enum class Purpose : std::uint64_t {
  features = 1,
  thresholds = 2,
  rows = 3,
  shuffles = 4,
  orders = 5,
  levels = 6,
};

// A bijective hash of 64 bits (the finaliser of SplitMix64).
constexpr std::uint64_t mix(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

constexpr std::uint64_t golden = 0x9e3779b97f4a7c15ULL;

constexpr std::uint64_t combine(std::uint64_t a, std::uint64_t b) {
  return mix(mix(a + golden) ^ (b * golden + 0x632be59bd9b4e019ULL));
}

class Stream {
 public:
  constexpr Stream(std::uint64_t seed, Purpose purpose, std::uint64_t index)
      : key_(combine(combine(seed, static_cast<std::uint64_t>(purpose)), index)) {}

  constexpr std::uint64_t bits() { return mix(key_ + golden * ++counter_); }

  // Uniform on [0, 1), 53 bits.
  constexpr double uniform() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }

  // The draw with this number, from 0; it does not depend on the counter.
  constexpr double uniform_at(std::uint64_t number) const {
    return static_cast<double>(mix(key_ + golden * (number + 1)) >> 11) * 0x1.0p-53;
  }

  // Uniform on 0 … n-1 without bias (n > 0): the upper half of a product. The rare lower halves
  // that would make some results more frequent are rejected.
  constexpr std::uint64_t below(std::uint64_t n) {
    for (;;) {
      const WideProduct product = multiply_wide(bits(), n);
      if (product.low >= n || product.low >= (0 - n) % n) return product.high;
    }
  }

 private:
  std::uint64_t key_;
  std::uint64_t counter_ = 0;
};

}  // namespace spinney::common
