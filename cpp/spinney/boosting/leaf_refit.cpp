#include "spinney/boosting/leaf_refit.h"

#include <array>
#include <bit>
#include <limits>

#include "spinney/common/parallel.h"
#include "spinney/loss/line_search.h"

namespace spinney::boosting {

using common::parallel_for;

namespace {

// Integers in the order of the floats.
std::uint64_t key_of(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  return bits >> 63 != 0 ? ~bits : bits | (std::uint64_t{1} << 63);
}

double value_of(std::uint64_t key) {
  return std::bit_cast<double>(key >> 63 != 0 ? key & ~(std::uint64_t{1} << 63) : ~key);
}

std::int64_t weight_at(const LeafResiduals& leaf, std::size_t i) {
  return leaf.weights.empty() ? 1 : leaf.weights[i];
}

std::int64_t total_weight(const LeafResiduals& leaf) {
  if (leaf.weights.empty()) return static_cast<std::int64_t>(leaf.residuals.size());
  std::int64_t total = 0;
  for (const std::int64_t weight : leaf.weights) total += weight;
  return total;
}

// weighted_quantile of the rows of all workers, for each leaf.
std::vector<double> select(const std::vector<LeafResiduals>& leaves, double level,
                           common::Exchange& exchange) {
  struct Found {
    std::uint64_t key = 0;  // the bits found so far
    std::int64_t below = 0;
    double wanted = 0;
  };
  constexpr std::size_t n_digits = 256;
  std::vector<Found> found(leaves.size());
  std::vector<std::int64_t> counts(leaves.size() * n_digits);
  for (int shift = 56; shift >= 0; shift -= 8) {
    std::fill(counts.begin(), counts.end(), 0);
    for (std::size_t l = 0; l < leaves.size(); ++l) {
      for (std::size_t i = 0; i < leaves[l].residuals.size(); ++i) {
        const std::uint64_t key = key_of(leaves[l].residuals[i]);
        if (shift < 56 && (key ^ found[l].key) >> (shift + 8) != 0) continue;
        counts[l * n_digits + ((key >> shift) & 255)] += weight_at(leaves[l], i);
      }
    }
    exchange.add(counts.data(), counts.size());
    for (std::size_t l = 0; l < leaves.size(); ++l) {
      const std::int64_t* const of = counts.data() + l * n_digits;
      if (shift == 56) {
        std::int64_t total = 0;
        for (std::size_t digit = 0; digit < n_digits; ++digit) total += of[digit];
        found[l].wanted = level * static_cast<double>(total);
      }
      // If rounding makes `wanted` exceed the total, the last digit that occurs is chosen.
      std::size_t last = 0;
      for (std::size_t digit = 0; digit < n_digits; ++digit) {
        if (of[digit] > 0) last = digit;
      }
      std::size_t digit = 0;
      while (digit < last && (of[digit] == 0 ||
                              static_cast<double>(found[l].below + of[digit]) < found[l].wanted)) {
        found[l].below += of[digit];
        ++digit;
      }
      if (shift == 0) found[l].below += of[digit];  // weight up to this value, inclusive
      found[l].key |= std::uint64_t{digit} << shift;
    }
  }
  // If the weight up to the value is exactly `wanted`, the quantile is the mean of this value and
  // the next.
  constexpr double none = -std::numeric_limits<double>::infinity();
  std::vector<double> next(leaves.size(), none);  // negated
  for (std::size_t l = 0; l < leaves.size(); ++l) {
    for (const double residual : leaves[l].residuals) {
      if (key_of(residual) > found[l].key) next[l] = std::max(next[l], -residual);
    }
  }
  exchange.max(next.data(), next.size());
  std::vector<double> values(leaves.size());
  for (std::size_t l = 0; l < leaves.size(); ++l) {
    const double value = value_of(found[l].key);
    const bool between = static_cast<double>(found[l].below) == found[l].wanted && next[l] != none;
    values[l] = between ? 0.5 * (value - next[l]) : value;
  }
  return values;
}

}  // namespace

std::vector<double> refit_leaves(const loss::Loss& loss, std::vector<LeafResiduals>& leaves,
                                 double largest_weight, bool repeats, const Workers& workers,
                                 int n_threads) {
  std::vector<double> values(leaves.size());
  const double level = loss::search_level(loss);
  if (workers.exchange == nullptr) {
    parallel_for(leaves.size(), n_threads, [&](std::size_t l, int) {
      if (!leaves[l].residuals.empty()) {
        values[l] = loss::weighted_quantile(leaves[l].residuals, leaves[l].weights, level);
      }
    });
  } else {
    values = select(leaves, level, *workers.exchange);
  }
  if (loss.kind != loss::LossKind::huber) return values;
  // Huber's loss: add the mean of the clipped distances to the median (Friedman 2001).
  const double units = loss::huber_units_in_one(loss, largest_weight, workers.n_rows);
  std::vector<std::int64_t> sums(2 * leaves.size());
  for (std::size_t l = 0; l < leaves.size(); ++l) {
    sums[2 * l] =
        loss::huber_sum(loss, leaves[l].residuals, leaves[l].weights, repeats, values[l], units);
    sums[2 * l + 1] = total_weight(leaves[l]);
  }
  common::add_up(workers.exchange, sums.data(), sums.size());
  for (std::size_t l = 0; l < leaves.size(); ++l) {
    if (sums[2 * l + 1] == 0) continue;
    values[l] += static_cast<double>(sums[2 * l]) / units / static_cast<double>(sums[2 * l + 1]);
  }
  return values;
}

}  // namespace spinney::boosting
