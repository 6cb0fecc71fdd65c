// Stable least-significant-digit radix sort by bits [low_bit, high_bit) of 64-bit keys. Skips
// digits that are equal in all keys.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace spinney::table {

// Sorts items[0 … n) by key(item); swap[0 … n) is scratch. Returns the array with the result.
template <class Item, class Key>
Item* radix_sort(Item* items, Item* swap, std::size_t n, int low_bit, int high_bit,
                 const Key& key) {
  constexpr int digit_bits = 11;
  constexpr std::size_t n_buckets = std::size_t{1} << digit_bits;
  if (n < 2) return items;
  for (int shift = low_bit; shift < high_bit; shift += digit_bits) {
    const int width = std::min(high_bit - shift, digit_bits);
    const std::uint64_t mask = (std::uint64_t{1} << width) - 1;
    std::array<std::uint32_t, n_buckets> count{};
    for (std::size_t i = 0; i < n; ++i) ++count[(key(items[i]) >> shift) & mask];
    if (count[(key(items[0]) >> shift) & mask] == n) continue;
    std::uint32_t start = 0;
    for (std::size_t bucket = 0; bucket <= mask; ++bucket) {
      const std::uint32_t size = count[bucket];
      count[bucket] = start;
      start += size;
    }
    for (std::size_t i = 0; i < n; ++i) {
      const Item item = items[i];
      swap[count[(key(item) >> shift) & mask]++] = item;
    }
    std::swap(items, swap);
  }
  return items;
}

// The same for items that are keys.
inline std::uint64_t* radix_sort(std::uint64_t* keys, std::uint64_t* swap, std::size_t n,
                                 int low_bit, int high_bit) {
  return radix_sort(keys, swap, n, low_bit, high_bit, [](std::uint64_t key) { return key; });
}

}  // namespace spinney::table
