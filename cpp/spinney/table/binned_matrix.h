// A table as one-byte bin codes, for histogram searches.
//
// Bins of a numeric column contain about equally many rows; a column with few values has one bin
// per value. A category is a bin; the rarest categories share the last bin. Missing values have
// their own code after the others.
//
// The codes are stored twice: by column, and by row in as few cache lines as possible. In a row,
// sparse columns share a byte (a bundle) if at most one of them differs from its most frequent code
// (one-hot columns). A matrix for a part of a table stores codes by row only, to save memory.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "spinney/common/large_array.h"
#include "spinney/common/types.h"
#include "spinney/table/row_matrix.h"
#include "spinney/table/table.h"

namespace spinney::table {

struct BinnedColumn {
  bool categorical = false;
  bool has_missing = false;
  std::uint32_t n_bins = 1;              // codes of present values: 0 … n_bins-1
  std::vector<double> cuts;              // numeric: a value's code is the number of cuts below it
  std::vector<std::uint8_t> bin_of;      // categorical: bin by category
  std::vector<std::uint32_t> n_rows_of;  // rows by code
  // A column derived from categorical column `source`: one number per category, and one for
  // missing. Splits of it are splits on the categories of `source`. −1: not derived.
  std::int32_t source = -1;
  std::vector<double> of_category;
  // Position in a row's codes, and first index in a histogram. −1: constant, not stored.
  std::int32_t slot = -1;
  std::uint32_t start = 0;
  // In a bundle: its most frequent code is 0; the others are first_code, first_code + 1, …
  bool bundled = false;
  std::uint32_t common_code = 0;
  std::uint32_t first_code = 0;
  std::vector<std::uint8_t> code_of;  // by code of the bundle

  std::uint32_t n_codes() const { return n_bins + (has_missing ? 1U : 0U); }
  std::uint32_t missing_code() const { return n_bins; }
};

// One byte of every row: a column or a bundle of columns.
struct CodeSlot {
  std::uint32_t start = 0;    // first index in a histogram
  std::uint32_t n_codes = 0;  // at most 256
};

// Slots [first, first + width) whose histograms together fit the first-level cache.
struct SlotGroup {
  std::uint32_t first = 0;
  std::uint32_t width = 0;
};

constexpr std::uint32_t max_group_width = 16;

// The codes of one column, in either storage order.
struct BinCodes {
  const std::uint8_t* first = nullptr;
  std::size_t stride = 1;  // between rows

  std::uint8_t operator[](std::size_t row) const { return first[row * stride]; }
};

class BinnedMatrix : public RowMatrix {
 public:
  // Finds bins (max_bins: 2 to 255) on a sample of at most max_cut_rows rows of `among`, or of all
  // rows if it is empty. weights: by row, or null; a row of weight w counts as w rows.
  BinnedMatrix(const Table& table, std::uint32_t max_bins, int n_threads,
               std::span<const common::Row> among = {}, const double* weights = nullptr);

  // A matrix for n_rows rows of a distributed table. `bins` are those of the whole table: cuts or
  // bin_of, and n_bins. write() adds a block of rows and records missing values. complete() sets
  // has_missing from all workers: missing[f] > 0 if any worker has a missing value in column f.
  // Columns are never bundled, because all workers need the same layout; codes are stored by row
  // only.
  BinnedMatrix(std::vector<BinnedColumn> bins, std::size_t n_rows);
  void write(const Table& rows, std::size_t first, int n_threads);
  void complete(std::span<const std::int64_t> missing);

  // Other rows with the bins of `like`; codes by column only.
  BinnedMatrix(const Table& table, const BinnedMatrix& like, int n_threads);

  // Declares that column f is derived from categorical column `source`.
  void derive(std::size_t f, std::size_t source, std::vector<double> of_category);

  // The number of rows by column and code. Distributed: sets the numbers of the whole table.
  std::vector<std::int64_t> code_counts() const;
  void set_code_counts(std::span<const std::int64_t> counts);

  std::size_t n_rows() const override { return n_rows_; }
  std::size_t n_features() const { return columns_.size(); }
  std::uint32_t n_codes() const { return n_codes_; }  // in a histogram of all slots
  const CodeSlot& slot(std::size_t s) const { return slots_[s]; }
  const BinnedColumn& column(std::size_t f) const { return columns_[f]; }
  bool only_by_row() const { return only_by_row_; }
  // Requires !only_by_row().
  const std::uint8_t* codes(std::size_t f) const { return by_column_.data() + f * n_rows_; }
  // In either storage order.
  BinCodes column_codes(std::size_t f) const {
    return only_by_row_ ? BinCodes{by_row_.data() + f, stride_} : BinCodes{codes(f), 1};
  }
  const std::uint8_t* row_codes() const { return by_row_.data(); }  // [row][stride]
  std::size_t stride() const { return stride_; }
  std::span<const SlotGroup> groups() const { return groups_; }

 private:
  void find_bins(const Table& table, std::uint32_t max_bins, std::span<const common::Row> among,
                 const double* weights, int n_threads);
  void write_codes(const Table& table, std::size_t first, int n_threads);
  std::array<std::int64_t, 256> count_codes_of(std::size_t f) const;
  void count_codes(int n_threads);
  void make_slots();
  void make_slots_of_columns();
  void number_codes();
  void bundle(std::vector<std::uint32_t>& candidates);
  void make_groups();
  void write_rows(int n_threads);

  std::size_t n_rows_ = 0;
  bool only_by_row_ = false;
  std::uint32_t n_codes_ = 0;
  std::vector<BinnedColumn> columns_;
  std::size_t stride_ = 0;
  common::LargeArray<std::uint8_t> by_column_;
  common::LargeArray<std::uint8_t> by_row_;
  std::vector<SlotGroup> groups_;
  std::vector<CodeSlot> slots_;
};

// Maximum size of the sample that determines the cuts.
constexpr std::size_t max_cut_rows = 200'000;

// The sample of rows that determines the cuts of a table with n_rows rows, ascending.
std::vector<std::uint64_t> sample_rows(std::uint64_t n_rows);

// Cuts of a numeric column, from its distinct values in ascending order and their counts.
std::vector<double> find_cuts(std::span<const double> values, std::span<const std::uint64_t> counts,
                              std::uint32_t max_bins);

// Cuts from unsorted values of sampled rows; NaN is missing.
std::vector<double> find_cuts(std::span<const float> values, std::uint32_t max_bins);
std::vector<double> find_cuts(std::span<const double> values, std::uint32_t max_bins);

// Weights as integers, scaled by a power of two: the sum of n weights up to `largest` is below
// 2^53. A positive weight is at least 1. Empty if no weight is positive.
std::vector<std::uint64_t> weight_units(std::span<const double> weights, double largest,
                                        std::uint64_t n);

// Cuts from weighted values: a row with weight units[i] counts as that many rows. Rows of weight 0
// are ignored.
std::vector<double> find_weighted_cuts(std::span<const float> values,
                                       std::span<const std::uint64_t> units,
                                       std::uint32_t max_bins);
std::vector<double> find_weighted_cuts(std::span<const double> values,
                                       std::span<const std::uint64_t> units,
                                       std::uint32_t max_bins);

// The bin of each category, from the number (or weight) of its rows.
std::vector<std::uint8_t> bin_categories(std::span<const std::uint64_t> counts,
                                         std::uint32_t max_bins);

}  // namespace spinney::table
