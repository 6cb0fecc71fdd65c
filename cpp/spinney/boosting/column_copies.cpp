#include "spinney/boosting/column_copies.h"

#include <algorithm>

#include "spinney/common/parallel.h"

namespace spinney::boosting {

using common::parallel_for;
using common::worthwhile_threads;

const std::uint8_t* ColumnCopies::codes(std::uint32_t feature, std::size_t n_rows, int n_threads) {
  ++clock_;
  for (Copy& copy : copies_) {
    if (copy.feature != feature) continue;
    copy.last_use = clock_;
    return copy.codes.data();
  }
  const std::size_t n = matrix_.n_rows();
  if (max_columns_ == 0 || 2 * n_rows < n) return nullptr;
  if (copies_.size() < max_columns_)
    copies_.push_back({feature, 0, common::LargeArray<std::uint8_t>(n)});
  Copy& oldest =
      *std::min_element(copies_.begin(), copies_.end(),
                        [](const Copy& a, const Copy& b) { return a.last_use < b.last_use; });
  oldest.feature = feature;
  oldest.last_use = clock_;
  constexpr std::size_t block = 16'384;
  const table::BinCodes from = matrix_.column_codes(feature);
  std::uint8_t* const out = oldest.codes.data();
  parallel_for((n + block - 1) / block,
               worthwhile_threads(2.0 * static_cast<double>(n), n_threads, true),
               [&](std::size_t block_index, int) {
                 const std::size_t end = std::min(n, (block_index + 1) * block);
                 for (std::size_t row = block_index * block; row < end; ++row) out[row] = from[row];
               });
  return out;
}

}  // namespace spinney::boosting
