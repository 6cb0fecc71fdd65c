// Least-significant-digit radix sort of 64-bit keys by the bits [low_bit, high_bit), stable.
// Digits that all keys share are skipped.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace spinney {

// Sorts keys[0 … n), using swap[0 … n); returns the one of the two that holds the result.
inline std::uint64_t* radix_sort(std::uint64_t* keys, std::uint64_t* swap, std::size_t n,
                                 int low_bit, int high_bit) {
  constexpr int digit_bits = 11;
  constexpr std::size_t n_buckets = std::size_t{1} << digit_bits;
  if (n < 2) return keys;
  for (int shift = low_bit; shift < high_bit; shift += digit_bits) {
    const int width = std::min(high_bit - shift, digit_bits);
    const std::uint64_t mask = (std::uint64_t{1} << width) - 1;
    std::array<std::uint32_t, n_buckets> count{};
    for (std::size_t i = 0; i < n; ++i) ++count[(keys[i] >> shift) & mask];
    if (count[(keys[0] >> shift) & mask] == n) continue;
    std::uint32_t start = 0;
    for (std::size_t bucket = 0; bucket <= mask; ++bucket) {
      const std::uint32_t size = count[bucket];
      count[bucket] = start;
      start += size;
    }
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t key = keys[i];
      swap[count[(key >> shift) & mask]++] = key;
    }
    std::swap(keys, swap);
  }
  return keys;
}

}  // namespace spinney
