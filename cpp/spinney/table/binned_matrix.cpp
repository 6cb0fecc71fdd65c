#include "spinney/table/binned_matrix.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <numeric>

#include "spinney/common/check.h"
#include "spinney/common/dispatch.h"
#include "spinney/common/parallel.h"
#include "spinney/common/random.h"
#include "spinney/table/radix_sort.h"

namespace spinney {
namespace {

constexpr std::size_t max_sample = 200'000;
constexpr std::size_t cache_bytes = 28'672;  // what histograms may take of a first-level cache

// Between two neighbouring values, so that low <= cut < high.
double between(double low, double high) {
  const double middle = low / 2 + high / 2;
  return middle >= low && middle < high ? middle : low;
}

// Keys of floats that ascend with them.
std::uint64_t ascending(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value + 0.0);  // −0 becomes 0
  return bits >> 63 != 0 ? ~bits : bits | (std::uint64_t{1} << 63);
}

double from_ascending(std::uint64_t key) {
  return std::bit_cast<double>(key >> 63 != 0 ? key & ~(std::uint64_t{1} << 63) : ~key);
}

void sort_values(std::vector<double>& values) {
  if (values.size() < 4096) {
    std::sort(values.begin(), values.end());
    return;
  }
  std::vector<std::uint64_t> keys(values.size());
  std::vector<std::uint64_t> swap(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) keys[i] = ascending(values[i]);
  const std::uint64_t* const sorted = radix_sort(keys.data(), swap.data(), keys.size(), 0, 64);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = from_ascending(sorted[i]);
}

// Rows that the cuts are found on, ascending: all, or one at random out of each stretch.
std::vector<Row> sample_rows(std::size_t n_rows) {
  std::vector<Row> rows(std::min(n_rows, max_sample));
  if (n_rows <= max_sample) {
    std::iota(rows.begin(), rows.end(), Row{0});
    return rows;
  }
  Stream stream(0, Purpose::rows, n_rows);
  const double step = static_cast<double>(n_rows) / static_cast<double>(max_sample);
  for (std::size_t i = 0; i < max_sample; ++i) {
    const double at = step * (static_cast<double>(i) + stream.uniform());
    rows[i] = static_cast<Row>(std::min(at, static_cast<double>(n_rows - 1)));
  }
  return rows;
}

void bin_categories(const Column& column, std::size_t n_rows, std::uint32_t max_bins,
                    BinnedColumn& out) {
  const auto n_categories = static_cast<std::size_t>(column.n_categories);
  std::vector<std::size_t> count(n_categories);
  for (std::size_t row = 0; row < n_rows; ++row) {
    const std::int32_t category = column.category(row);
    if (category < 0) {
      out.has_missing = true;
    } else {
      ++count[static_cast<std::size_t>(category)];
    }
  }
  out.categorical = true;
  out.bin_of.assign(n_categories, 0);
  out.n_bins = static_cast<std::uint32_t>(std::clamp<std::size_t>(n_categories, 1, max_bins));
  std::vector<std::uint32_t> order(n_categories);
  std::iota(order.begin(), order.end(), 0U);
  if (n_categories > max_bins) {  // the most frequent first; the rest share the last bin
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return count[a] > count[b]; });
  }
  for (std::size_t i = 0; i < n_categories; ++i) {
    out.bin_of[order[i]] = static_cast<std::uint8_t>(std::min<std::size_t>(i, out.n_bins - 1));
  }
}

void bin_numbers(const Column& column, std::span<const Row> rows, std::uint32_t max_bins,
                 BinnedColumn& out) {
  std::vector<double> values(rows.size());
  gather(column, rows.data(), static_cast<Row>(rows.size()), values.data());
  const auto missing = [](double value) { return std::isnan(value); };
  values.erase(std::remove_if(values.begin(), values.end(), missing), values.end());
  sort_values(values);
  if (!values.empty() && !(std::isfinite(values.front()) && std::isfinite(values.back()))) {
    throw InputError("Input X contains infinity or a value too large for dtype('float64').");
  }
  out.cuts = find_cuts(values, max_bins);
  out.n_bins = static_cast<std::uint32_t>(out.cuts.size() + 1);
}

// Numbers of cuts below the values: a binary search without branches over 256 places, so that the
// searches of neighbouring rows overlap. NaN is at or below every cut; the caller looks for it.
SPINNEY_KERNEL void count_below(const double* values, std::size_t n, const double* cuts,
                                std::uint8_t* out) {
  for (std::size_t i = 0; i < n; ++i) {
    std::uint32_t at = 0;
    for (std::uint32_t step = 128; step > 0; step /= 2) {
      at += values[i] > cuts[at + step - 1] ? step : 0;
    }
    out[i] = static_cast<std::uint8_t>(at);
  }
}

}  // namespace

std::vector<double> find_cuts(std::span<const double> sorted, std::uint32_t max_bins) {
  std::vector<double> values;
  std::vector<std::size_t> counts;
  for (const double value : sorted) {
    if (values.empty() || value > values.back()) {
      values.push_back(value);
      counts.push_back(0);
    }
    ++counts.back();
  }
  std::vector<double> cuts;
  if (values.size() <= max_bins) {
    for (std::size_t i = 1; i < values.size(); ++i) {
      cuts.push_back(between(values[i - 1], values[i]));
    }
    return cuts;
  }
  // Values that would fill a bin have one for themselves; the others share what is left evenly.
  std::size_t bins_left = max_bins;
  std::size_t rows_left = sorted.size();
  const double fair = static_cast<double>(sorted.size()) / static_cast<double>(max_bins);
  std::vector<bool> alone(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    alone[i] = static_cast<double>(counts[i]) >= fair;
    if (alone[i]) {
      --bins_left;
      rows_left -= counts[i];
    }
  }
  double share =
      bins_left == 0 ? 0.0 : static_cast<double>(rows_left) / static_cast<double>(bins_left);
  std::size_t here = 0;
  for (std::size_t i = 0; i + 1 < values.size() && cuts.size() + 1 < max_bins; ++i) {
    if (!alone[i]) rows_left -= counts[i];
    here += counts[i];
    const bool half_full = static_cast<double>(here) >= std::max(1.0, share / 2);
    if (alone[i] || static_cast<double>(here) >= share || (alone[i + 1] && half_full)) {
      cuts.push_back(between(values[i], values[i + 1]));
      here = 0;
      if (!alone[i] && bins_left > 1) {
        --bins_left;
        share = static_cast<double>(rows_left) / static_cast<double>(bins_left);
      }
    }
  }
  return cuts;
}

BinnedMatrix::BinnedMatrix(const Table& table, std::uint32_t max_bins, int n_threads)
    : n_rows_(table.n_rows), columns_(table.n_features()) {
  if (max_bins < 2 || max_bins > 255) throw InputError("max_bins: expected 2 to 255");
  find_bins(table, max_bins, n_threads);
  make_groups(n_threads);
  write_codes(table, n_threads);
}

BinnedMatrix::BinnedMatrix(const Table& table, const BinnedMatrix& like, int n_threads)
    : n_rows_(table.n_rows), columns_(like.columns_) {
  if (table.n_features() != like.n_features()) throw InputError("rows: another number of columns");
  write_codes(table, n_threads);
}

void BinnedMatrix::find_bins(const Table& table, std::uint32_t max_bins, int n_threads) {
  const std::vector<Row> rows = sample_rows(n_rows_);
  const double work = 40.0 * static_cast<double>(rows.size() * n_features());
  parallel_for(n_features(), worthwhile_threads(work, n_threads), [&](std::size_t f, int) {
    const Column& column = table.columns[f];
    if (column.kind == ColumnKind::categorical) {
      bin_categories(column, n_rows_, max_bins, columns_[f]);
    } else {
      bin_numbers(column, rows, max_bins, columns_[f]);
    }
  });
}

void BinnedMatrix::make_groups(int n_threads) {
  // As many columns as histograms fit into the cache, but work for every thread.
  const std::size_t fair = (n_features() + static_cast<std::size_t>(n_threads) - 1) /
                           static_cast<std::size_t>(n_threads);
  const std::size_t widest = std::clamp<std::size_t>(fair, 1, max_group_width);
  std::size_t bytes = 0;
  for (std::uint32_t f = 0; f < n_features(); ++f) {
    const std::size_t more = 8 * std::size_t{columns_[f].n_bins + 1};
    if (groups_.empty() || groups_.back().width == widest || bytes + more > cache_bytes) {
      groups_.push_back({f, 0, {}});
      bytes = 0;
    }
    ++groups_.back().width;
    bytes += more;
  }
}

void BinnedMatrix::write_codes(const Table& table, int n_threads) {
  by_column_.resize(n_rows_ * n_features());
  for (ColumnGroup& group : groups_) group.codes.resize(n_rows_ * group.width);
  // Cuts filled up to 256 places with infinity, for a search without branches.
  std::vector<double> padded(n_features() * 256, std::numeric_limits<double>::infinity());
  for (std::size_t f = 0; f < n_features(); ++f) {
    std::copy(columns_[f].cuts.begin(), columns_[f].cuts.end(),
              padded.begin() + static_cast<std::ptrdiff_t>(f * 256));
  }
  std::vector<std::atomic<bool>> misses(n_features());
  std::atomic<bool> infinite{false};
  constexpr std::size_t block = 1024;
  const double work = 4.0 * static_cast<double>(n_rows_ * n_features());
  parallel_for((n_rows_ + block - 1) / block, worthwhile_threads(work, n_threads),
               [&](std::size_t piece, int) {
                 const std::size_t begin = piece * block;
                 const std::size_t n = std::min(block, n_rows_ - begin);
                 std::vector<double> values(n);
                 std::vector<Row> rows(n);
                 std::iota(rows.begin(), rows.end(), static_cast<Row>(begin));
                 for (std::size_t f = 0; f < n_features(); ++f) {
                   const BinnedColumn& column = columns_[f];
                   std::uint8_t* const out = by_column_.data() + f * n_rows_ + begin;
                   const auto missing = static_cast<std::uint8_t>(column.missing_code());
                   bool any_missing = false;
                   if (column.categorical) {
                     for (std::size_t i = 0; i < n; ++i) {
                       const std::int32_t category = table.columns[f].category(begin + i);
                       out[i] = category < 0 ? missing
                                             : column.bin_of[static_cast<std::size_t>(category)];
                       any_missing |= category < 0;
                     }
                   } else {
                     gather(table.columns[f], rows.data(), static_cast<Row>(n), values.data());
                     count_below(values.data(), n, padded.data() + f * 256, out);
                     double sum = 0;  // NaN or infinite if any value is
                     for (std::size_t i = 0; i < n; ++i) sum += values[i] * 0.0;
                     if (sum != 0.0) {
                       for (std::size_t i = 0; i < n; ++i) {
                         if (std::isnan(values[i])) {
                           out[i] = missing;
                           any_missing = true;
                         } else if (std::isinf(values[i])) {
                           infinite = true;
                         }
                       }
                     }
                   }
                   if (any_missing) misses[f] = true;
                 }
                 for (ColumnGroup& group : groups_) {
                   std::uint8_t* const out = group.codes.data() + begin * group.width;
                   for (std::uint32_t j = 0; j < group.width; ++j) {
                     const std::uint8_t* const codes =
                         by_column_.data() + (group.first + j) * n_rows_ + begin;
                     for (std::size_t i = 0; i < n; ++i) out[i * group.width + j] = codes[i];
                   }
                 }
               });
  if (infinite) {
    throw InputError("Input X contains infinity or a value too large for dtype('float64').");
  }
  for (std::size_t f = 0; f < n_features(); ++f) {
    columns_[f].has_missing |= misses[f];
    columns_[f].start = n_codes_;
    n_codes_ += columns_[f].n_codes();
  }
}

}  // namespace spinney
