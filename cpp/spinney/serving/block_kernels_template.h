// The kernels in terms of a few vector operations. A source file for one instruction set includes
// this once, after it has defined in the anonymous namespace:
//
//   SPINNEY_TARGET          attribute of functions that use the instructions, or nothing
//   Vector, Mask            a vector of bytes, and the result of a comparison
//   load, store             of aligned memory
//   splat, equal, above     of unsigned bytes
//   both(mask, mask)        conjunction of masks
//   choose(mask, right, left)       byte by byte
//   zeros, ones, and_not(a, b), either(a, b), either_both(a, b, c): a & ~b, a | b, a | (b & c)
//   select(bits, right, left)       bit by bit
//   above_bits(codes, last_left)    bit i of 64: codes[i] > last_left
//   set_bits(codes, bit)            bit i of 64: codes[i] has this bit
//   Positions: 64 numbers of 16 bits with add(bits, one), which adds `one` where a bit is set, and
//   store(to)
//
// Lambdas would not inherit SPINNEY_TARGET, so there are none.

#pragma once

#include "spinney/common/compiler.h"
#include "spinney/serving/block_kernels.h"

namespace spinney::serving {

namespace {

constexpr std::size_t n_vectors = BlockKernels::block_rows / (8 * sizeof(Vector));
constexpr std::size_t n_words = BlockKernels::n_words;

SPINNEY_TARGET void apply(const CodeSplit* begin, const CodeSplit* end, const std::uint8_t* codes,
                          std::size_t n, std::uint8_t* position) {
  constexpr std::size_t n_bytes = sizeof(Vector);
  constexpr std::size_t n_registers = BlockKernels::apply_rows / n_bytes;
  for (std::size_t first = 0; first < n; first += BlockKernels::apply_rows) {
    Vector at[n_registers];  // stay in registers; the compiler's loop would store them each time
    SPINNEY_UNROLL(16)
    for (std::size_t v = 0; v < n_registers; ++v) at[v] = load(position + first + v * n_bytes);
    for (const CodeSplit* split = begin; split < end; ++split) {
      const std::uint8_t* const of = codes + split->lane * BlockKernels::block_rows + first;
      const Vector here = splat(split->position);
      const Vector last_left = splat(split->last_left);
      const Vector right = splat(split->right);
      SPINNEY_UNROLL(16)
      for (std::size_t v = 0; v < n_registers; ++v) {
        const Mask moves = both(equal(at[v], here), above(load(of + v * n_bytes), last_left));
        at[v] = choose(moves, right, at[v]);
      }
    }
    SPINNEY_UNROLL(16)
    for (std::size_t v = 0; v < n_registers; ++v) store(at[v], position + first + v * n_bytes);
  }
}

// One bit for each row of a block.
struct Bits {
  Vector v[n_vectors];
};

SPINNEY_TARGET inline Bits load_bits(const std::uint64_t* from) {
  Bits bits;
  SPINNEY_UNROLL(4)
  for (std::size_t i = 0; i < n_vectors; ++i) {
    bits.v[i] = load(reinterpret_cast<const std::uint8_t*>(from) + i * sizeof(Vector));
  }
  return bits;
}

SPINNEY_TARGET inline void store_bits(const Bits& bits, std::uint64_t* to) {
  SPINNEY_UNROLL(4)
  for (std::size_t i = 0; i < n_vectors; ++i) {
    store(bits.v[i], reinterpret_cast<std::uint8_t*>(to) + i * sizeof(Vector));
  }
}

// Comparisons of four bits of the codes: equal[v] are the rows where they are v, above[v] those
// where they are larger.
struct Half {
  Bits equal[16];
  Bits above[16];
};

SPINNEY_TARGET void find_half(const std::uint8_t* codes, int first_bit, Half& half) {
  alignas(64) std::uint64_t words[4][n_words];
  for (int bit = 0; bit < 4; ++bit) {
    for (std::size_t w = 0; w < n_words; ++w) {
      words[bit][w] = set_bits(codes + 64 * w, first_bit + bit);
    }
  }
  for (std::size_t i = 0; i < n_vectors; ++i) {
    const auto* const of = reinterpret_cast<const std::uint8_t*>(words) + i * sizeof(Vector);
    Vector larger = zeros();
    for (int value = 15; value >= 0; --value) {
      Vector same = ones();
      for (int bit = 0; bit < 4; ++bit) {
        const Vector set = load(of + static_cast<std::size_t>(bit) * 8 * n_words);
        same = (value >> bit & 1) != 0 ? select(same, set, zeros()) : and_not(same, set);
      }
      half.equal[value].v[i] = same;
      half.above[value].v[i] = larger;
      larger = either(larger, same);
    }
  }
}

// With fewer comparisons of a column, each compares the codes.
constexpr std::size_t min_for_halves = 16;

SPINNEY_TARGET void compare(const std::uint8_t* codes, std::span<const CodeComparison> comparisons,
                            std::uint64_t* results) {
  const CodeComparison* const begin = comparisons.data();
  const CodeComparison* const end = begin + comparisons.size();
  if (comparisons.size() < min_for_halves) {
    for (const CodeComparison* one = begin; one < end; ++one) {
      std::uint64_t* const to = results + one->number * n_words;
      for (std::size_t w = 0; w < n_words; ++w) to[w] = above_bits(codes + 64 * w, one->last_left);
    }
    return;
  }
  Half low;
  Half high;
  find_half(codes, 0, low);
  find_half(codes, 4, high);
  for (const CodeComparison* one = begin; one < end; ++one) {
    // Above in the high half; or equal there, and above in the low half.
    const Bits& over = high.above[one->last_left >> 4];
    const Bits& same = high.equal[one->last_left >> 4];
    const Bits& low_over = low.above[one->last_left & 15];
    Bits result;
    for (std::size_t i = 0; i < n_vectors; ++i) {
      result.v[i] = either_both(over.v[i], same.v[i], low_over.v[i]);
    }
    store_bits(result, results + one->number * n_words);
  }
}

constexpr int inlined_levels = 5;  // whose selections are unrolled

SPINNEY_TARGET inline Bits select_bits(const Bits& bits, const Bits& right, const Bits& left) {
  Bits out;
  SPINNEY_UNROLL(4)
  for (std::size_t i = 0; i < n_vectors; ++i) {
    out.v[i] = select(bits.v[i], right.v[i], left.v[i]);
  }
  return out;
}

// Selects one of 2^n results by the directions at the n levels above, the highest level first.
template <int n>
SPINNEY_TARGET SPINNEY_INLINE Bits select_result(const std::uint32_t* splits,
                                                 const std::uint64_t* results,
                                                 const Bits* directions) {
  if constexpr (n == 0) {
    return load_bits(results + splits[0] * n_words);
  } else {
    const Bits left = select_result<n - 1>(splits, results, directions + 1);
    const Bits right = select_result<n - 1>(splits + (1 << (n - 1)), results, directions + 1);
    return select_bits(directions[0], right, left);
  }
}

SPINNEY_TARGET void select_any(std::size_t n, const std::uint32_t* splits,
                               const std::uint64_t* results, const Bits* directions, Bits& out) {
  switch (n) {
    case 0:
      out = select_result<0>(splits, results, directions);
      return;
    case 1:
      out = select_result<1>(splits, results, directions);
      return;
    case 2:
      out = select_result<2>(splits, results, directions);
      return;
    case 3:
      out = select_result<3>(splits, results, directions);
      return;
    case 4:
      out = select_result<4>(splits, results, directions);
      return;
    case inlined_levels:
      out = select_result<inlined_levels>(splits, results, directions);
      return;
    default: {
      const std::size_t half = std::size_t{1} << (n - 1);
      Bits left;
      Bits right;
      select_any(n - 1, splits, results, directions + 1, left);
      select_any(n - 1, splits + half, results, directions + 1, right);
      out = select_bits(directions[0], right, left);
    }
  }
}

SPINNEY_TARGET void find_positions(const std::uint32_t* splits, std::size_t n_levels,
                                   const std::uint64_t* results, std::uint16_t* position) {
  Bits directions[BlockKernels::max_levels];
  for (std::size_t level = 0; level < n_levels; ++level) {
    select_any(level, splits, results, directions, directions[level]);
    splits += std::size_t{1} << level;
  }
  alignas(64) std::uint64_t words[BlockKernels::max_levels][n_words];
  for (std::size_t level = 0; level < n_levels; ++level) {
    store_bits(directions[level], words[level]);
  }
  for (std::size_t w = 0; w < n_words; ++w) {
    Positions positions;
    for (std::size_t level = 0; level < n_levels; ++level) {
      positions.add(words[level][w], static_cast<std::uint16_t>(1U << (n_levels - 1 - level)));
    }
    positions.store(position + 64 * w);
  }
}

}  // namespace

}  // namespace spinney::serving
