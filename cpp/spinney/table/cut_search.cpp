#include "spinney/table/cut_search.h"

namespace spinney {

SPINNEY_KERNEL void count_below(const double* values, std::size_t n, const CutSearch& search,
                                std::uint8_t* out) {
  const double* const cuts = search.cuts.data();
  for (std::size_t i = 0; i < n; ++i) {
    const double value = values[i];
    std::uint32_t at = search.below[search.cell(value)];
    for (std::uint32_t step = search.first_step; step > 0; step /= 2) {
      at += static_cast<std::uint32_t>(value > cuts[at + step - 1]) * step;
    }
    out[i] = static_cast<std::uint8_t>(at);
  }
}

}  // namespace spinney
