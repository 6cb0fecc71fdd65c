#include "spinney/table/cut_search.h"

#include "spinney/common/dispatch.h"

namespace spinney::table {

namespace {

// n_steps: the number of binary search steps as a constant, or −1: search.first_step decides.
template <int n_steps>
SPINNEY_INLINE void count_blocks(const double* values, std::size_t n, const CutSearch& search,
                                 std::uint8_t* __restrict out) {
  constexpr std::size_t block = 64;
  const double* const cuts = search.cuts.data();
  const std::uint8_t* const below = search.below.data();
  const std::uint32_t first_step = n_steps < 0 ? search.first_step : (1U << n_steps) / 2;
  alignas(64) std::int32_t cells[block];  // computed first, because that loop vectorises
  for (std::size_t begin = 0; begin < n; begin += block) {
    const double* const block_values = values + begin;
    const std::size_t count = std::min(block, n - begin);
    for (std::size_t i = 0; i < count; ++i) {
      cells[i] = search.cell(block_values[i]);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const double value = block_values[i];
      std::uint32_t at = below[cells[i]];
      for (std::uint32_t step = first_step; step > 0; step /= 2) {
        at += static_cast<std::uint32_t>(value > cuts[at + step - 1]) * step;
      }
      out[begin + i] = static_cast<std::uint8_t>(at);
    }
  }
}

SPINNEY_INLINE void count_kernel(const double* values, std::size_t n, const CutSearch& search,
                                 std::uint8_t* out) {
  switch (search.first_step) {
    case 1:
      return count_blocks<1>(values, n, search, out);
    case 2:
      return count_blocks<2>(values, n, search, out);
    case 4:
      return count_blocks<3>(values, n, search, out);
    default:
      return count_blocks<-1>(values, n, search, out);
  }
}

}  // namespace

void count_below(const double* values, std::size_t n, const CutSearch& search, std::uint8_t* out) {
  common::dispatch<count_kernel>(values, n, search, out);
}

}  // namespace spinney::table
