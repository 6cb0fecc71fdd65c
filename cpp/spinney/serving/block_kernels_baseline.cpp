// The compiler vectorises this for any processor. Results as bits need instructions of their own.
#include "spinney/serving/block_kernels.h"

namespace spinney::serving {

namespace {

void apply_one(const CodeSplit& split, const std::uint8_t* __restrict codes, std::size_t n,
               std::uint8_t* __restrict position) {
  const std::uint8_t here = split.position;
  const std::uint8_t right = split.right;
  const std::uint8_t last_left = split.last_left;
  constexpr std::size_t chunk = 64;
  for (std::size_t first = 0; first < n; first += chunk) {
    for (std::size_t i = first; i < first + chunk; ++i) {
      const bool moves = (position[i] == here) & (codes[i] > last_left);
      position[i] = moves ? right : position[i];
    }
  }
}

void apply(const CodeSplit* begin, const CodeSplit* end, const std::uint8_t* codes, std::size_t n,
           std::uint8_t* position) {
  for (const CodeSplit* split = begin; split < end; ++split) {
    apply_one(*split, codes + split->lane * BlockKernels::block_rows, n, position);
  }
}

}  // namespace

const BlockKernels baseline_block_kernels{apply, nullptr, nullptr, 0.1, 0, 0};

}  // namespace spinney::serving
