// Kernels of the block scorer, one version for each instruction set. Values are codes of one byte.
//
// `apply` moves the positions of rows through one split after another. `compare` stores the results
// of splits as bits, one for each of 512 rows, which all trees share. `find_positions` selects a
// path of splits for each row from these bits: a tree's levels are filled up to 1, 2, 4 … splits;
// the result of the first level selects one of two results of the second level, and so on. A
// selection is one instruction for as many rows as a vector has bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace spinney::serving {

// A numeric split on codes.
struct CodeSplit {
  std::uint32_t lane;               // index of its codes in a block
  std::uint8_t position;            // the leftmost leaf below it: rows there are at this node
  std::uint8_t right;               // the position of its right child
  std::uint8_t last_left;           // codes up to this go left
  const std::uint32_t* categories;  // those that go left; null for a numeric split
};

// A comparison whose result is stored as bits.
struct CodeComparison {
  std::uint32_t number;    // of its result
  std::uint8_t last_left;  // codes up to this go left
};

struct BlockKernels {
  static constexpr std::size_t block_rows = 512;
  static constexpr std::size_t n_words = block_rows / 64;
  static constexpr std::size_t max_levels = 12;   // of find_positions
  static constexpr std::size_t apply_rows = 256;  // `apply` takes a multiple of this

  // position[i] = split.right for rows at split.position with codes[lane * block_rows + i] >
  // last_left, for n rows, split by split. All splits are numeric.
  void (*apply)(const CodeSplit* begin, const CodeSplit* end, const std::uint8_t* codes,
                std::size_t n, std::uint8_t* position);
  // Bit i of result k, at results + k * n_words: codes[i] > last_left. Null: no bits.
  void (*compare)(const std::uint8_t* codes, std::span<const CodeComparison> comparisons,
                  std::uint64_t* results);
  // position[i] = path of row i in a tree of n_levels full levels, as a number with one bit for
  // each level. splits: numbers of results, level by level, 2^n_levels - 1 of them. `results` and
  // `codes` are aligned to 64 bytes.
  void (*find_positions)(const std::uint32_t* splits, std::size_t n_levels,
                         const std::uint64_t* results, std::uint16_t* position);

  // Nanoseconds per row. They select the kernel for a tree and change no result. Those of AVX-512
  // are measured; the others follow from the numbers of instructions.
  double apply_cost;   // of a split
  double select_cost;  // of a selection between two results
  double level_cost;   // of a level of find_positions
};

// The version for this processor.
const BlockKernels& block_kernels();

// All versions that this processor can run.
std::span<const BlockKernels* const> supported_block_kernels();

extern const BlockKernels baseline_block_kernels;
#if defined(__x86_64__)
extern const BlockKernels avx2_block_kernels;
extern const BlockKernels avx512_block_kernels;
#elif defined(__aarch64__)
extern const BlockKernels neon_block_kernels;
#endif

}  // namespace spinney::serving
