#include "spinney/ensemble/bag.h"

namespace spinney::ensemble {

using common::Row;

Bag::Bag(std::size_t n_rows, std::size_t n_drawn, bool replace, const double* weights)
    : n_rows_(n_rows), n_drawn_(n_drawn), replace_(replace), weights_(weights) {
  if (weights == nullptr) return;
  double total = 0;
  for (std::size_t row = 0; row < n_rows; ++row) total += weights[row];
  keep_.resize(n_rows);
  alias_.resize(n_rows);
  // Fractions in units of 1/n: each row below 1 is filled up by a row above 1.
  std::vector<Row> small;
  std::vector<Row> large;
  Row heaviest = 0;
  for (std::size_t row = 0; row < n_rows; ++row) {
    keep_[row] = weights[row] / total * static_cast<double>(n_rows);
    alias_[row] = static_cast<Row>(row);
    if (weights[row] > weights[heaviest]) heaviest = static_cast<Row>(row);
    (keep_[row] < 1 ? small : large).push_back(static_cast<Row>(row));
  }
  while (!small.empty() && !large.empty()) {
    const Row poor = small.back();
    const Row rich = large.back();
    small.pop_back();
    alias_[poor] = rich;
    keep_[rich] -= 1 - keep_[poor];
    if (keep_[rich] < 1) {
      large.pop_back();
      small.push_back(rich);
    }
  }
  for (const Row row : large) keep_[row] = 1;
  // Remainders of rounding; a row with weight zero is never drawn.
  for (const Row row : small) {
    if (weights[row] > 0) {
      keep_[row] = 1;
    } else {
      keep_[row] = 0;
      alias_[row] = heaviest;
    }
  }
}

}  // namespace spinney::ensemble
