#include "spinney/table/binned_matrix.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <iterator>
#include <numeric>
#include <string>
#include <type_traits>

#include "spinney/common/check.h"
#include "spinney/common/dispatch.h"
#include "spinney/common/memory.h"
#include "spinney/common/parallel.h"
#include "spinney/common/random.h"
#include "spinney/table/cut_search.h"
#include "spinney/table/radix_sort.h"

namespace spinney::table {

using common::InputError;
using common::parallel_for;
using common::Row;
using common::worthwhile_threads;

namespace {

constexpr std::size_t cache_bytes =
    28'672;  // limit of the histograms of a slot group in the first-level cache

constexpr std::uint32_t max_bundled_codes = 64;
// Minimum fraction of rows with the most frequent code of a bundled column.
constexpr double common_share = 0.75;
constexpr std::size_t max_open_bundles = 16;

// Whether any row of `taken` has another code than the common one.
SPINNEY_INLINE bool conflicts(const std::uint8_t* codes, std::uint8_t common,
                              const std::uint8_t* taken, std::size_t n) {
  constexpr std::size_t block = 4096;
  for (std::size_t begin = 0; begin < n; begin += block) {
    const std::size_t end = n - begin < block ? n : begin + block;
    std::uint8_t any = 0;
    for (std::size_t i = begin; i < end; ++i) {
      any |= static_cast<std::uint8_t>((codes[i] != common ? 1 : 0) & taken[i]);
    }
    if (any != 0) return true;
  }
  return false;
}

SPINNEY_INLINE void mark(const std::uint8_t* codes, std::uint8_t common, std::size_t n,
                         std::uint8_t* taken) {
  for (std::size_t i = 0; i < n; ++i) {
    taken[i] |= static_cast<std::uint8_t>(codes[i] != common ? 1 : 0);
  }
}

// Unsigned keys with the same order as the values.
template <class Value>
using KeyOf = std::conditional_t<sizeof(Value) == 4, std::uint32_t, std::uint64_t>;

template <class Value>
KeyOf<Value> ascending(Value value) {
  constexpr int sign = 8 * sizeof(Value) - 1;
  const auto bits = std::bit_cast<KeyOf<Value>>(value + Value{0});  // −0 becomes 0
  return bits >> sign != 0 ? ~bits : bits | (KeyOf<Value>{1} << sign);
}

template <class Value>
Value from_ascending(KeyOf<Value> key) {
  constexpr int sign = 8 * sizeof(Value) - 1;
  const auto bits = key >> sign != 0 ? key & ~(KeyOf<Value>{1} << sign) : ~key;
  return std::bit_cast<Value>(static_cast<KeyOf<Value>>(bits));
}

template <class Value>
void sort_values(std::vector<Value>& values) {
  if (values.size() < 4096) {
    std::sort(values.begin(), values.end());
    return;
  }
  std::vector<std::uint64_t> keys(values.size());
  std::vector<std::uint64_t> swap(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) keys[i] = ascending(values[i]);
  const std::uint64_t* const sorted =
      radix_sort(keys.data(), swap.data(), keys.size(), 0, 8 * sizeof(Value));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = from_ascending<Value>(static_cast<KeyOf<Value>>(sorted[i]));
  }
}

// Cuts of values without missing values; sorts `values`.
template <class Value>
std::vector<double> cuts_of(std::vector<Value>& values, std::uint32_t max_bins) {
  sort_values(values);
  std::vector<double> distinct;
  std::vector<std::uint64_t> counts;
  distinct.reserve(values.size());
  counts.reserve(values.size());
  for (const Value value : values) {
    if (distinct.empty() || static_cast<double>(value) > distinct.back()) {
      distinct.push_back(static_cast<double>(value));
      counts.push_back(0);
    }
    ++counts.back();
  }
  return find_cuts(distinct, counts, max_bins);
}

template <class Value>
std::vector<double> cuts_without_missing(std::span<const Value> values, std::uint32_t max_bins) {
  std::vector<Value> present;
  present.reserve(values.size());
  std::copy_if(values.begin(), values.end(), std::back_inserter(present),
               [](Value value) { return !std::isnan(value); });
  return cuts_of(present, max_bins);
}

struct WeightedValue {
  std::uint64_t key;  // same order as the values
  std::uint64_t units;
};

template <class Value>
std::vector<double> weighted_cuts(std::span<const Value> values,
                                  std::span<const std::uint64_t> units, std::uint32_t max_bins) {
  std::vector<WeightedValue> items;
  items.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i]) || units[i] == 0) continue;
    items.push_back({ascending(static_cast<double>(values[i])), units[i]});
  }
  const auto key_of = [](const WeightedValue& item) { return item.key; };
  std::vector<WeightedValue> swap;
  const WeightedValue* sorted = items.data();
  if (items.size() < 4096) {
    std::sort(items.begin(), items.end(),
              [](const WeightedValue& a, const WeightedValue& b) { return a.key < b.key; });
  } else {
    swap.resize(items.size());
    sorted = radix_sort(items.data(), swap.data(), items.size(), 0, 64, key_of);
  }
  std::vector<double> distinct;
  std::vector<std::uint64_t> counts;
  distinct.reserve(items.size());
  counts.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i == 0 || sorted[i].key != sorted[i - 1].key) {
      distinct.push_back(from_ascending<double>(sorted[i].key));
      counts.push_back(0);
    }
    counts.back() += sorted[i].units;
  }
  return find_cuts(distinct, counts, max_bins);
}

// units: by row of the table; empty: every row has weight 1.
void bin_categories(const Column& column, std::size_t n_rows, std::uint32_t max_bins,
                    std::span<const std::uint64_t> units, BinnedColumn& out) {
  std::vector<std::uint64_t> count(static_cast<std::size_t>(column.n_categories));
  for (std::size_t row = 0; row < n_rows; ++row) {
    const std::int32_t category = column.category(row);
    if (category < 0) {
      out.has_missing = true;
    } else {
      count[static_cast<std::size_t>(category)] += units.empty() ? 1 : units[row];
    }
  }
  out.categorical = true;
  out.n_bins = static_cast<std::uint32_t>(std::clamp<std::size_t>(count.size(), 1, max_bins));
  out.bin_of = table::bin_categories(count, max_bins);
}

// units: by element of `rows`; empty: every row has weight 1.
void bin_numbers(const Column& column, std::span<const Row> rows, std::uint32_t max_bins,
                 std::span<const std::uint64_t> units, BinnedColumn& out) {
  std::vector<double> values(rows.size());
  gather(column, rows.data(), static_cast<Row>(rows.size()), values.data());
  if (std::any_of(values.begin(), values.end(), [](double value) { return std::isinf(value); })) {
    throw InputError("Input X contains infinity or a value too large for dtype('float64').");
  }
  if (units.empty()) {
    const auto missing = [](double value) { return std::isnan(value); };
    values.erase(std::remove_if(values.begin(), values.end(), missing), values.end());
    out.cuts = cuts_of(values, max_bins);
  } else {
    out.cuts = weighted_cuts(std::span<const double>(values), units, max_bins);
  }
  out.n_bins = static_cast<std::uint32_t>(out.cuts.size() + 1);
}

}  // namespace

std::vector<std::uint64_t> sample_rows(std::uint64_t n_rows) {
  std::vector<std::uint64_t> rows(std::min<std::uint64_t>(n_rows, max_cut_rows));
  if (n_rows <= max_cut_rows) {
    std::iota(rows.begin(), rows.end(), std::uint64_t{0});
    return rows;
  }
  // One random row of each of max_cut_rows equal ranges.
  common::Stream stream(0, common::Purpose::rows, n_rows);
  const double step = static_cast<double>(n_rows) / static_cast<double>(max_cut_rows);
  for (std::size_t i = 0; i < max_cut_rows; ++i) {
    const double at = step * (static_cast<double>(i) + stream.uniform());
    rows[i] = static_cast<std::uint64_t>(std::min(at, static_cast<double>(n_rows - 1)));
  }
  return rows;
}

std::vector<std::uint64_t> weight_units(std::span<const double> weights, double largest,
                                        std::uint64_t n) {
  if (!(largest > 0) || std::isinf(largest)) return {};
  int exponent = 0;
  std::frexp(largest, &exponent);
  const int shift = 53 - static_cast<int>(std::bit_width(n)) - exponent;
  std::vector<std::uint64_t> units(weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] > 0)) continue;
    // ldexp instead of a product: for tiny weights the factor would overflow.
    const double scaled = std::nearbyint(std::ldexp(weights[i], shift));
    units[i] = static_cast<std::uint64_t>(std::max(1.0, scaled));
  }
  return units;
}

std::vector<std::uint8_t> bin_categories(std::span<const std::uint64_t> counts,
                                         std::uint32_t max_bins) {
  const std::size_t n = counts.size();
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0U);
  if (n > max_bins) {  // most frequent first; the other categories share the last bin
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return counts[a] > counts[b]; });
  }
  std::vector<std::uint8_t> bin_of(n);
  for (std::size_t i = 0; i < n; ++i) {
    bin_of[order[i]] = static_cast<std::uint8_t>(std::min<std::size_t>(i, max_bins - 1));
  }
  return bin_of;
}

std::vector<double> find_cuts(std::span<const double> values, std::span<const std::uint64_t> counts,
                              std::uint32_t max_bins) {
  std::vector<double> cuts;
  if (values.size() <= max_bins) {
    for (std::size_t i = 1; i < values.size(); ++i) {
      cuts.push_back(between(values[i - 1], values[i]));
    }
    return cuts;
  }
  // A value with at least the mean weight of a bin gets its own bin. The other values share the
  // remaining bins evenly.
  std::size_t bins_left = max_bins;
  std::uint64_t rows_left = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  const double fair = static_cast<double>(rows_left) / static_cast<double>(max_bins);
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
  std::uint64_t here = 0;
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

std::vector<double> find_cuts(std::span<const float> values, std::uint32_t max_bins) {
  return cuts_without_missing(values, max_bins);
}

std::vector<double> find_cuts(std::span<const double> values, std::uint32_t max_bins) {
  return cuts_without_missing(values, max_bins);
}

std::vector<double> find_weighted_cuts(std::span<const float> values,
                                       std::span<const std::uint64_t> units,
                                       std::uint32_t max_bins) {
  return weighted_cuts(values, units, max_bins);
}

std::vector<double> find_weighted_cuts(std::span<const double> values,
                                       std::span<const std::uint64_t> units,
                                       std::uint32_t max_bins) {
  return weighted_cuts(values, units, max_bins);
}

BinnedMatrix::BinnedMatrix(const Table& table, std::uint32_t max_bins, int n_threads,
                           std::span<const Row> among, const double* weights)
    : n_rows_(table.n_rows), columns_(table.n_features()) {
  if (max_bins < 2 || max_bins > 255)
    throw InputError("max_bins must be from 2 to 255; got " + std::to_string(max_bins));
  find_bins(table, max_bins, among, weights, n_threads);
  write_codes(table, 0, n_threads);
  count_codes(n_threads);
  make_slots();
  make_groups();
  write_rows(n_threads);
}

BinnedMatrix::BinnedMatrix(std::vector<BinnedColumn> bins, std::size_t n_rows)
    : n_rows_(n_rows), only_by_row_(true), columns_(std::move(bins)) {
  for (const BinnedColumn& column : columns_) {
    if (column.n_bins < 1 || column.n_bins > 255 ||
        (!column.categorical && column.cuts.size() + 1 != column.n_bins) ||
        std::any_of(column.bin_of.begin(), column.bin_of.end(),
                    [&](std::uint8_t bin) { return bin >= column.n_bins; })) {
      throw InputError("bins: every column must have from 1 to 255 bins");
    }
  }
  common::return_free_memory();  // of the search for bins
  // A multiple of 16: some rows span two cache lines, but powers of two need up to twice the
  // memory.
  constexpr std::size_t unit = 16;
  const std::size_t n = std::max<std::size_t>(n_features(), 1);
  stride_ = n <= unit ? std::bit_ceil(n) : (n + unit - 1) / unit * unit;
  by_row_.resize(n_rows_ * stride_);
}

void BinnedMatrix::write(const Table& rows, std::size_t first, int n_threads) {
  if (rows.n_features() != columns_.size())
    throw InputError("bins: expected " + std::to_string(columns_.size()) + " columns, got " +
                     std::to_string(rows.n_features()));
  if (first > n_rows_ || rows.n_rows > n_rows_ - first) {
    throw InputError("the rows at `first` exceed the size of the binned matrix");
  }
  for (std::size_t f = 0; f < columns_.size(); ++f) {
    const Column& given = rows.columns[f];
    const bool categorical = given.kind == ColumnKind::categorical;
    if (columns_[f].categorical != categorical ||
        (categorical &&
         columns_[f].bin_of.size() != static_cast<std::size_t>(given.n_categories))) {
      throw InputError("bins: kinds or categories of the columns differ from those of the table");
    }
  }
  write_codes(rows, first, n_threads);
}

void BinnedMatrix::complete(std::span<const std::int64_t> missing) {
  if (missing.size() != columns_.size())
    throw InputError("missing: expected one number for each column");
  if (!slots_.empty()) throw InputError("complete() must be called once");
  for (std::size_t f = 0; f < columns_.size(); ++f) {
    columns_[f].has_missing |= missing[f] > 0;
    columns_[f].n_rows_of.assign(columns_[f].n_codes(), 0);
  }
  make_slots_of_columns();
  make_groups();
}

BinnedMatrix::BinnedMatrix(const Table& table, const BinnedMatrix& like, int n_threads)
    : n_rows_(table.n_rows), columns_(like.columns_) {
  if (table.n_features() != like.n_features())
    throw InputError("the table must have as many columns as the binned matrix");
  write_codes(table, 0, n_threads);
}

void BinnedMatrix::find_bins(const Table& table, std::uint32_t max_bins, std::span<const Row> among,
                             const double* weights, int n_threads) {
  std::vector<Row> rows;
  for (const std::uint64_t row : sample_rows(among.empty() ? n_rows_ : among.size())) {
    rows.push_back(among.empty() ? static_cast<Row>(row) : among[row]);
  }
  std::vector<std::uint64_t> units;      // by sampled row
  std::vector<std::uint64_t> all_units;  // by row, if categories share a bin
  if (weights != nullptr && !rows.empty()) {
    std::vector<double> sampled(rows.size());
    std::transform(rows.begin(), rows.end(), sampled.begin(),
                   [&](Row row) { return weights[row]; });
    units = weight_units(sampled, *std::max_element(sampled.begin(), sampled.end()), rows.size());
    if (std::any_of(table.columns.begin(), table.columns.end(), [&](const Column& column) {
          return column.kind == ColumnKind::categorical &&
                 static_cast<std::uint64_t>(column.n_categories) > max_bins;
        })) {
      const double largest = *std::max_element(weights, weights + n_rows_);
      all_units = weight_units({weights, n_rows_}, largest, n_rows_);
    }
  }
  const double work = 40.0 * static_cast<double>(rows.size() * n_features());
  parallel_for(n_features(), worthwhile_threads(work, n_threads), [&](std::size_t f, int) {
    const Column& column = table.columns[f];
    if (column.kind == ColumnKind::categorical) {
      bin_categories(column, n_rows_, max_bins, all_units, columns_[f]);
    } else {
      bin_numbers(column, rows, max_bins, units, columns_[f]);
    }
  });
}

// Writes the codes of the table's rows at positions first, first + 1, …
void BinnedMatrix::write_codes(const Table& table, std::size_t first, int n_threads) {
  const std::size_t n = table.n_rows;
  if (!only_by_row_) by_column_.resize(n_rows_ * n_features());
  std::vector<CutSearch> searches;
  for (const BinnedColumn& column : columns_) searches.emplace_back(column.cuts);
  std::vector<std::atomic<bool>> any_missing(n_features());
  std::atomic<bool> infinite{false};
  constexpr std::size_t block = 1024;

  const auto code_numbers = [&](std::size_t f, std::span<const Row> rows, double* values,
                                std::uint8_t* out) {
    gather(table.columns[f], rows.data(), static_cast<Row>(rows.size()), values);
    count_below(values, rows.size(), searches[f], out);
    double sum = 0;  // NaN if any value is NaN or infinite
    for (std::size_t i = 0; i < rows.size(); ++i) sum += values[i] * 0.0;
    if (sum == 0.0) return;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (std::isnan(values[i])) {
        out[i] = static_cast<std::uint8_t>(columns_[f].missing_code());
        any_missing[f] = true;
      } else if (std::isinf(values[i])) {
        infinite = true;
      }
    }
  };
  const auto code_categories = [&](std::size_t f, std::span<const Row> rows, std::uint8_t* out) {
    const BinnedColumn& column = columns_[f];
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::int32_t category = table.columns[f].category(rows[i]);
      out[i] = category < 0 ? static_cast<std::uint8_t>(column.missing_code())
                            : column.bin_of[static_cast<std::size_t>(category)];
      if (category < 0) any_missing[f] = true;
    }
  };
  const auto code_block = [&](std::size_t block_index, int) {
    const std::size_t begin = block_index * block;
    std::array<Row, block> all;
    std::array<double, block> values;
    const std::span<Row> rows(all.data(), std::min(block, n - begin));
    std::iota(rows.begin(), rows.end(), static_cast<Row>(begin));
    std::array<std::uint8_t, block> found;
    for (std::size_t f = 0; f < n_features(); ++f) {
      std::uint8_t* const codes =
          only_by_row_ ? found.data() : by_column_.data() + f * n_rows_ + first + begin;
      if (columns_[f].categorical) {
        code_categories(f, rows, codes);
      } else {
        code_numbers(f, rows, values.data(), codes);
      }
      if (!only_by_row_) continue;
      std::uint8_t* const out = by_row_.data() + (first + begin) * stride_ + f;
      for (std::size_t i = 0; i < rows.size(); ++i) out[i * stride_] = codes[i];
    }
  };
  const double work = 4.0 * static_cast<double>(n * n_features());
  parallel_for((n + block - 1) / block, worthwhile_threads(work, n_threads), code_block);
  if (infinite) {
    throw InputError("Input X contains infinity or a value too large for dtype('float64').");
  }
  for (std::size_t f = 0; f < n_features(); ++f) columns_[f].has_missing |= any_missing[f];
}

void BinnedMatrix::derive(std::size_t f, std::size_t source, std::vector<double> of_category) {
  if (f >= n_features() || source >= f) throw InputError("derive: column indices are out of range");
  columns_[f].source = static_cast<std::int32_t>(source);
  columns_[f].of_category = std::move(of_category);
}

std::array<std::int64_t, 256> BinnedMatrix::count_codes_of(std::size_t f) const {
  // Several counters per code, so that an addition need not wait for the previous one.
  constexpr std::size_t n_counters = 4;
  std::array<std::array<std::uint32_t, 256>, n_counters> count{};
  const BinCodes of = column_codes(f);
  std::size_t row = 0;
  for (; row + n_counters <= n_rows_; row += n_counters) {
    for (std::size_t c = 0; c < n_counters; ++c) ++count[c][of[row + c]];
  }
  for (; row < n_rows_; ++row) ++count[0][of[row]];
  std::array<std::int64_t, 256> out{};
  for (std::size_t code = 0; code < out.size(); ++code) {
    for (std::size_t c = 0; c < n_counters; ++c) out[code] += count[c][code];
  }
  return out;
}

void BinnedMatrix::count_codes(int n_threads) {
  const double work = 0.5 * static_cast<double>(n_rows_ * n_features());
  parallel_for(n_features(), worthwhile_threads(work, n_threads), [&](std::size_t f, int) {
    const std::array<std::int64_t, 256> count = count_codes_of(f);
    std::vector<std::uint32_t>& out = columns_[f].n_rows_of;
    out.resize(columns_[f].n_codes());
    for (std::size_t code = 0; code < out.size(); ++code) {
      out[code] = static_cast<std::uint32_t>(count[code]);
    }
  });
}

std::vector<std::int64_t> BinnedMatrix::code_counts() const {
  std::vector<std::int64_t> counts;
  for (std::size_t f = 0; f < n_features(); ++f) {
    const std::array<std::int64_t, 256> count = count_codes_of(f);
    counts.insert(counts.end(), count.begin(), count.begin() + columns_[f].n_codes());
  }
  return counts;
}

void BinnedMatrix::set_code_counts(std::span<const std::int64_t> counts) {
  std::size_t at = 0;
  for (const BinnedColumn& column : columns_) at += column.n_codes();
  if (counts.size() != at) throw InputError("counts: expected one number for each code");
  at = 0;
  for (BinnedColumn& column : columns_) {
    for (std::uint32_t& count : column.n_rows_of) count = static_cast<std::uint32_t>(counts[at++]);
  }
}

void BinnedMatrix::make_slots() {
  std::vector<std::uint32_t> candidates;  // columns that may join a bundle
  for (std::uint32_t f = 0; f < n_features(); ++f) {
    BinnedColumn& column = columns_[f];
    if (column.n_codes() < 2) continue;
    if (column.n_codes() <= max_bundled_codes) {
      const std::vector<std::uint32_t>& count = column.n_rows_of;
      const auto most = std::max_element(count.begin(), count.end());
      if (static_cast<double>(*most) >= common_share * static_cast<double>(n_rows_)) {
        column.common_code = static_cast<std::uint32_t>(most - count.begin());
        candidates.push_back(f);
        continue;
      }
    }
    column.slot = static_cast<std::int32_t>(slots_.size());
    slots_.push_back({0, column.n_codes()});
  }
  bundle(candidates);
  number_codes();
}

// One byte per column, in column order; constant columns too, although no split uses them.
void BinnedMatrix::make_slots_of_columns() {
  for (BinnedColumn& column : columns_) {
    if (column.n_codes() > 1) column.slot = static_cast<std::int32_t>(slots_.size());
    slots_.push_back({0, column.n_codes()});
  }
  number_codes();
}

void BinnedMatrix::number_codes() {
  for (CodeSlot& slot : slots_) {
    slot.start = n_codes_;
    n_codes_ += slot.n_codes;
  }
  for (BinnedColumn& column : columns_) {
    if (column.slot < 0) continue;
    column.start = slots_[static_cast<std::size_t>(column.slot)].start + column.first_code;
  }
}

// First fit: each candidate joins the first bundle that has no conflicting row.
void BinnedMatrix::bundle(std::vector<std::uint32_t>& candidates) {
  struct Bundle {
    std::uint32_t n_codes = 1;
    std::vector<std::uint32_t> members;
    std::vector<std::uint8_t> taken;  // [row]
  };
  std::vector<Bundle> bundles;
  for (const std::uint32_t f : candidates) {
    const auto usual = static_cast<std::uint8_t>(columns_[f].common_code);
    const std::uint32_t n_more = columns_[f].n_codes() - 1;
    const auto fits = [&](const Bundle& into) {
      return into.n_codes + n_more <= 256 &&
             !common::dispatch<conflicts>(codes(f), usual, into.taken.data(), n_rows_);
    };
    // Tries only the latest bundles, so that the time is not quadratic in the number of columns.
    std::size_t at = bundles.size() > max_open_bundles ? bundles.size() - max_open_bundles : 0;
    while (at < bundles.size() && !fits(bundles[at])) ++at;
    if (at == bundles.size()) {
      bundles.emplace_back();
      bundles[at].taken.resize(n_rows_);
    }
    common::dispatch<mark>(codes(f), usual, n_rows_, bundles[at].taken.data());
    bundles[at].n_codes += n_more;
    bundles[at].members.push_back(f);
  }
  for (const Bundle& made : bundles) {
    const auto slot = static_cast<std::int32_t>(slots_.size());
    if (made.members.size() == 1) {
      columns_[made.members[0]].slot = slot;
      slots_.push_back({0, columns_[made.members[0]].n_codes()});
      continue;
    }
    std::uint32_t next = 1;
    for (const std::uint32_t f : made.members) {
      BinnedColumn& column = columns_[f];
      column.slot = slot;
      column.bundled = true;
      column.first_code = next;
      column.code_of.assign(256, static_cast<std::uint8_t>(column.common_code));
      for (std::uint32_t code = 0; code < column.n_codes(); ++code) {
        if (code != column.common_code) column.code_of[next++] = static_cast<std::uint8_t>(code);
      }
    }
    slots_.push_back({0, made.n_codes});
  }
}

void BinnedMatrix::make_groups() {
  std::size_t bytes = 0;
  for (std::uint32_t s = 0; s < slots_.size(); ++s) {
    const std::size_t more = 8 * std::size_t{slots_[s].n_codes};
    if (groups_.empty() || groups_.back().width == max_group_width || bytes + more > cache_bytes) {
      groups_.push_back({s, 0});
      bytes = 0;
    }
    ++groups_.back().width;
    bytes += more;
  }
  if (stride_ != 0) return;
  constexpr std::size_t line = 64;
  const std::size_t n = std::max<std::size_t>(slots_.size(), 1);
  stride_ = n <= line ? std::bit_ceil(n) : (n + line - 1) / line * line;
}

void BinnedMatrix::write_rows(int n_threads) {
  by_row_.resize(n_rows_ * stride_);
  constexpr std::size_t block = 1024;
  const auto write_block = [&](std::size_t block_index, int) {
    const std::size_t begin = block_index * block;
    const std::size_t n = std::min(block, n_rows_ - begin);
    std::uint8_t* const rows = by_row_.data() + begin * stride_;
    std::fill(rows, rows + n * stride_, std::uint8_t{0});
    for (std::size_t f = 0; f < n_features(); ++f) {
      const BinnedColumn& column = columns_[f];
      if (column.slot < 0) continue;
      const std::uint8_t* const from = codes(f) + begin;
      std::uint8_t* const out = rows + column.slot;
      if (!column.bundled) {
        for (std::size_t i = 0; i < n; ++i) out[i * stride_] = from[i];
        continue;
      }
      for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t code = from[i];
        if (code == column.common_code) continue;
        const std::uint32_t among = code < column.common_code ? code : code - 1;
        out[i * stride_] = static_cast<std::uint8_t>(column.first_code + among);
      }
    }
  };
  const double work = 2.0 * static_cast<double>(n_rows_ * n_features());
  parallel_for((n_rows_ + block - 1) / block, worthwhile_threads(work, n_threads), write_block);
}

}  // namespace spinney::table
