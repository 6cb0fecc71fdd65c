#include "spinney/boosting/mean_loss.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "spinney/common/fixed_point.h"

namespace spinney::boosting {

using common::Row;

namespace {

// A bound of the size: 0.75 times a power of 256.
double round_up(double size) {
  if (size == 0 || !(size <= std::numeric_limits<double>::max())) return size;
  int exponent = 0;
  std::frexp(size, &exponent);
  const int step = exponent >= 0 ? (exponent + 7) / 8 : -(-exponent / 8);
  return std::ldexp(0.75, 8 * step);
}

}  // namespace

double MeanLoss::of_rows(const ScoredRows& data, const std::vector<Row>* rows,
                         const std::vector<std::uint32_t>& group_starts, LossTotal& total) const {
  if (options_.loss.kind == loss::LossKind::ranking) {
    return mean_rank_loss(data, rows, group_starts, total);
  }
  if (rows != nullptr && rows->size() < data.n_rows) {
    return mean_of(total, [&](double units) { return sum_list(data, *rows, units); });
  }
  return mean_of(total, [&](double units) { return sum_all(data, units); });
}

double MeanLoss::with_derivatives(const ScoredRows& data, const loss::Derivatives& out,
                                  LossTotal& total) const {
  bool differentiated = false;
  return mean_of(total, [&](double units) {
    if (differentiated) return sum_all(data, units);
    differentiated = true;
    return sum_blocks(data.n_rows, [&](std::size_t begin, std::size_t end) {
      std::array<double, loss::row_block> buffer;
      return loss::differentiate_and_sum(options_.loss, data.block(begin, end, buffer.data()), 0,
                                         end - begin, units, out.from(begin));
    });
  });
}

// The units follow from the largest loss of all workers, rounded up to a power of 256. That bound
// is predicted from the previous mean, usually correctly; otherwise the sum is computed again.
template <class Sum>
double MeanLoss::mean_of(LossTotal& total, const Sum& sum) const {
  const std::size_t n_scores =
      options_.loss.is_separate() ? options_.loss.n_scores : std::size_t{1};
  for (;;) {
    const double units = common::units_in_one(total.bound, total.n_rows * n_scores);
    const loss::LossSum found = sum(units);
    const double bound = round_up(found.largest);
    // The prediction is right if no worker has a larger term and some worker has one of this bound.
    std::int64_t sums[3] = {found.units, bound > total.bound ? 1 : 0, bound == total.bound ? 1 : 0};
    common::add_up(options_.exchange, sums, 3);
    if (sums[1] == 0 && sums[2] > 0) {
      return static_cast<double>(sums[0]) / units / static_cast<double>(n_scores) / total.weight;
    }
    double largest = found.largest;
    common::find_max(options_.exchange, &largest, 1);
    if (largest == 0) return 0;
    if (!(largest <= std::numeric_limits<double>::max())) return largest;
    total.bound = round_up(largest);
  }
}

template <class Sum>
loss::LossSum MeanLoss::sum_blocks(std::size_t n, const Sum& sum) const {
  std::vector<loss::LossSum> sums((n + loss::row_block - 1) / loss::row_block);
  for_row_blocks(n, 4.0 * static_cast<double>(options_.loss.n_scores), options_.n_threads,
                 [&](std::size_t block, std::size_t begin, std::size_t end) {
                   sums[block] = sum(begin, end);
                 });
  loss::LossSum total;
  for (const loss::LossSum& of_block : sums) total.add(of_block);
  return total;
}

loss::LossSum MeanLoss::sum_all(const ScoredRows& data, double units) const {
  return sum_blocks(data.n_rows, [&](std::size_t begin, std::size_t end) {
    std::array<double, loss::row_block> buffer;
    return loss::loss_sum(options_.loss, data.block(begin, end, buffer.data()), 0, end - begin,
                          units);
  });
}

// Copies the rows of each block first, because losses are computed for contiguous rows.
loss::LossSum MeanLoss::sum_list(const ScoredRows& data, const std::vector<Row>& rows,
                                 double units) const {
  const std::size_t n_targets = options_.loss.n_targets;
  const std::size_t n_scores = options_.loss.n_scores;
  return sum_blocks(rows.size(), [&](std::size_t begin, std::size_t end) {
    const std::size_t n = end - begin;
    std::vector<double> targets(n * n_targets);
    std::vector<double> weights(data.weights == nullptr ? 0 : n);
    std::vector<double> scores(n * n_scores);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t row = rows[begin + i];
      for (std::size_t k = 0; k < n_targets; ++k) {
        targets[k * n + i] = data.targets[k * data.n_rows + row];
      }
      if (data.weights != nullptr) weights[i] = data.weights[row];
      for (std::size_t k = 0; k < n_scores; ++k) {
        scores[k * n + i] = data.scores[k * data.n_rows + row];
      }
    }
    const double* const given = data.weights == nullptr ? nullptr : weights.data();
    return loss::loss_sum(options_.loss, {targets.data(), given, scores.data(), n}, 0, n, units);
  });
}

// The mean over the groups whose rows are in the list.
double MeanLoss::mean_rank_loss(const ScoredRows& data, const std::vector<Row>* rows,
                                const std::vector<std::uint32_t>& group_starts,
                                LossTotal& total) const {
  std::vector<double> losses(group_starts.size() - 1);
  const double work = 50.0 * static_cast<double>(data.n_rows);
  common::parallel_for(losses.size(), common::worthwhile_threads(work, options_.n_threads, true),
                       [&](std::size_t g, int) {
                         losses[g] = loss::rank_loss(options_.ranking, data.all(), group_starts[g],
                                                     group_starts[g + 1]);
                       });
  const auto is_included = [&](std::size_t g) {
    return !std::isnan(losses[g]) &&
           (rows == nullptr || std::binary_search(rows->begin(), rows->end(), group_starts[g]));
  };
  std::int64_t n = 0;
  for (std::size_t g = 0; g < losses.size(); ++g) n += is_included(g) ? 1 : 0;
  common::add_up(options_.exchange, &n, 1);
  if (n == 0) return 0;
  LossTotal of_groups{static_cast<std::uint64_t>(n), static_cast<double>(n), total.bound};
  const double mean = mean_of(of_groups, [&](double units) {
    loss::LossSum sum;
    for (std::size_t g = 0; g < losses.size(); ++g) {
      if (is_included(g)) sum.add({common::nearest(losses[g] * units), std::abs(losses[g])});
    }
    return sum;
  });
  total.bound = of_groups.bound;
  return mean;
}

}  // namespace spinney::boosting
