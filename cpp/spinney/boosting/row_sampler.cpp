#include "spinney/boosting/row_sampler.h"

#include <algorithm>
#include <cmath>

#include "spinney/common/fixed_point.h"

namespace spinney::boosting {

using common::add_up;
using common::Row;

namespace {

// Numbers of this worker's rows in the whole table.
class RowNumbers {
 public:
  explicit RowNumbers(const std::vector<RowRange>& ranges) : ranges_(ranges) {}

  // Rows must ascend from call to call.
  std::uint64_t operator()(std::size_t row) {
    if (ranges_.empty()) return row;
    while (at_ + 1 < ranges_.size() && ranges_[at_ + 1].begin <= row) ++at_;
    return ranges_[at_].number + (row - ranges_[at_].begin);
  }

 private:
  const std::vector<RowRange>& ranges_;
  std::size_t at_ = 0;
};

// The size v such that `wanted` rows are drawn on average if a row of size s is drawn with
// probability min(1, s / v). With S(v) the sum of the sizes below v and N(v) the number of the
// others, S(v) / v + N(v) falls with v. The bits of the largest v for which it exceeds `wanted` are
// found ten at a time, from sums over all workers.
double certain_size(const std::vector<std::int64_t>& sizes, double wanted,
                    common::Exchange* exchange) {
  constexpr int digit_bits = 10;
  constexpr std::size_t n_digits = std::size_t{1} << digit_bits;
  std::vector<std::int64_t> found(2 * n_digits);  // sums, then numbers
  std::int64_t low = 0;
  std::int64_t small = 0;  // sum of the sizes that are certainly below v
  std::int64_t large = 0;  // number of the sizes that are certainly above v
  for (int shift = 4 * digit_bits; shift >= 0; shift -= digit_bits) {
    std::fill(found.begin(), found.end(), 0);
    for (const std::int64_t size : sizes) {
      const std::int64_t from = size - low;
      if (from < 0 || from >> shift >= static_cast<std::int64_t>(n_digits)) continue;
      const auto digit = static_cast<std::size_t>(from >> shift);
      found[digit] += size;
      ++found[n_digits + digit];
    }
    add_up(exchange, found.data(), found.size());
    std::int64_t below = small;
    std::int64_t above = large;
    for (std::size_t digit = 0; digit < n_digits; ++digit) above += found[n_digits + digit];
    std::size_t last = 0;
    for (std::size_t digit = 0; digit < n_digits; ++digit) {
      if (digit > 0) {
        const std::int64_t value = low + (static_cast<std::int64_t>(digit) << shift);
        const double drawn =
            static_cast<double>(below) / static_cast<double>(value) + static_cast<double>(above);
        if (!(drawn > wanted)) break;
        last = digit;
        small = below;
      }
      below += found[digit];
      above -= found[n_digits + digit];
    }
    for (std::size_t digit = last + 1; digit < n_digits; ++digit) large += found[n_digits + digit];
    low += static_cast<std::int64_t>(last) << shift;
    if (shift == 0) small += found[last];
  }
  const double rest = wanted - static_cast<double>(large);
  return rest > 0 ? static_cast<double>(small) / rest : 0.0;
}

}  // namespace

void RowSampler::draw(std::size_t round, const loss::Derivatives& derivatives) {
  if (!draws()) return;
  drawn_.clear();
  left_out_.clear();
  const common::Stream stream(options_.tree.seed, common::Purpose::rows, round);
  if (draws_by_gradient()) {
    draw_by_gradient(stream, derivatives);
  } else {
    draw_uniformly(stream);
  }
  auto n_drawn = static_cast<std::int64_t>(drawn_.size());
  add_up(options_.exchange, &n_drawn, 1);
  if (n_drawn > 0) return;
  drawn_.swap(left_out_);  // no worker drew a row: use all rows
  if (!draws_by_gradient()) return;
  for (const Row row : drawn_) weights_[row] = rows_.weight(row);
}

double RowSampler::largest_weight() const {
  double largest = 0;
  for (const Row row : drawn_) largest = std::max(largest, weights_[row]);
  common::find_max(options_.exchange, &largest, 1);
  return largest;
}

void RowSampler::draw_uniformly(const common::Stream& stream) {
  RowNumbers number(options_.row_ranges);
  for (std::size_t i = 0; i < rows_.n; ++i) {
    const Row row = rows_[i];
    const bool drawn = stream.uniform_at(number(row)) < options_.subsample;
    (drawn ? drawn_ : left_out_).push_back(row);
  }
}

void RowSampler::draw_by_gradient(const common::Stream& stream,
                                  const loss::Derivatives& derivatives) {
  const std::vector<std::int64_t> sizes = gradient_sizes(derivatives);
  const double wanted = options_.subsample * static_cast<double>(rows_.n_all);
  const double certain = certain_size(sizes, wanted, options_.exchange);
  weights_.resize(rows_.n_table_rows);
  RowNumbers number(options_.row_ranges);
  for (std::size_t i = 0; i < rows_.n; ++i) {
    const Row row = rows_[i];
    const double probability =
        certain > 0 ? std::min(1.0, static_cast<double>(sizes[i]) / certain) : 1.0;
    if (stream.uniform_at(number(row)) < probability) {
      drawn_.push_back(row);
      weights_[row] = rows_.weight(row) / probability;
    } else {
      left_out_.push_back(row);
    }
  }
}

// Regularized norm of each row's derivatives, times its weight, in units that all workers share.
std::vector<std::int64_t> RowSampler::gradient_sizes(const loss::Derivatives& derivatives) const {
  const double curvature = options_.tree.split.l2_regularization;
  std::vector<double> sizes(rows_.n);
  double largest = 0;
  for (std::size_t i = 0; i < rows_.n; ++i) {
    const Row row = rows_[i];
    double sum = 0;
    for (std::size_t k = 0; k < options_.loss.n_scores; ++k) {
      const auto g = static_cast<double>(derivatives.gradient[k * rows_.n_table_rows + row]);
      const auto h = static_cast<double>(derivatives.hessian[k * rows_.n_table_rows + row]);
      sum += g * g + curvature * h * h;
    }
    sizes[i] = std::sqrt(sum) * rows_.weight(row);
    largest = std::max(largest, sizes[i]);
  }
  common::find_max(options_.exchange, &largest, 1);
  const double units = common::units_in_one(largest, rows_.n_all);
  std::vector<std::int64_t> in_units(rows_.n);
  for (std::size_t i = 0; i < rows_.n; ++i) {
    in_units[i] = std::min(common::nearest(sizes[i] * units), (std::int64_t{1} << 50) - 1);
  }
  return in_units;
}

}  // namespace spinney::boosting
