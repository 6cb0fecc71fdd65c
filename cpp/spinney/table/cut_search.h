// Finds the bin of a value.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "spinney/common/compiler.h"

namespace spinney::table {

// A cut with low <= cut < high; a float32 if possible, because models are then smaller and
// predictions faster.
inline double between(double low, double high) {
  const double middle = low / 2 + high / 2;
  const auto narrow = static_cast<double>(static_cast<float>(middle));
  if (narrow >= low && narrow < high) return narrow;
  return middle >= low && middle < high ? middle : low;
}

// Counts the cuts below a value. A table of equally wide cells gives the cuts below the cell; a
// binary search without branches counts the cuts inside it. NaN counts as below every cut; the
// caller must handle it.
struct CutSearch {
  static constexpr std::size_t n_cells = 2048;
  double low = 0;
  double scale = 0;                           // cells per unit
  std::uint32_t first_step = 0;               // of the binary search; 0: no cuts
  std::array<std::uint8_t, n_cells> below{};  // cuts below a cell
  std::array<double, 512> cuts;               // padded with infinity

  explicit CutSearch(std::span<const double> given) {
    cuts.fill(std::numeric_limits<double>::infinity());
    std::copy(given.begin(), given.end(), cuts.begin());
    if (given.empty()) return;
    low = given.front();
    const double range = given.back() - low;
    const double wanted = static_cast<double>(n_cells - 2) / range;
    scale = range > 0 && std::isfinite(wanted) ? wanted : 0.0;
    std::array<std::uint32_t, n_cells> count{};
    for (const double cut : given) ++count[static_cast<std::size_t>(cell(cut))];
    std::uint32_t before = 0;
    std::uint32_t most = 0;
    for (std::size_t c = 0; c < n_cells; ++c) {
      below[c] = static_cast<std::uint8_t>(before);
      before += count[c];
      most = std::max(most, count[c]);
    }
    first_step = std::bit_floor(most);
  }

  // Values below the first cut or above the last one are in the cells of these cuts.
  SPINNEY_INLINE std::int32_t cell(double value) const {
    double at = (value - low) * scale;
    at = at > 0 ? at : 0.0;  // also NaN
    constexpr auto last = static_cast<double>(n_cells - 1);
    return static_cast<std::int32_t>(at < last ? at : last);
  }
};

// out[i] = the number of cuts below values[i].
void count_below(const double* values, std::size_t n, const CutSearch& search, std::uint8_t* out);

}  // namespace spinney::table
