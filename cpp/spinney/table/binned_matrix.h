// A table as small codes, one byte a value, for searches that count into histograms.
//
// A numeric column is cut into bins of about equally many rows (a bin per value where the values
// are few); a category is a bin, the rarest ones share the last. What is missing has a code of its
// own, after the others. Codes lie twice in memory: column by column, and row by row, a row in as
// few cache lines as it needs. In a row, columns that nearly always have the same code, and never
// two of them another one in the same row (one-hot columns), share a byte: a bundle. Of a part of
// a table codes lie row by row only: workers are to hold as much as they can.
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
  std::uint32_t n_bins = 1;              // codes of what is not missing: 0 … n_bins-1
  std::vector<double> cuts;              // numeric: a value's code is the number of cuts below it
  std::vector<std::uint8_t> bin_of;      // categorical: of each category
  std::vector<std::uint32_t> n_rows_of;  // of each code
  // A number for each category of another column (then one for what is missing there): questions
  // about it are questions about those categories.
  std::int32_t source = -1;
  std::vector<double> of_category;
  // Where its codes are in a row and, from `start` on, in a histogram; -1: nowhere, it is constant.
  std::int32_t slot = -1;
  std::uint32_t start = 0;
  // In a bundle its commonest code is 0, the others follow first_code in their order.
  bool bundled = false;
  std::uint32_t common_code = 0;
  std::uint32_t first_code = 0;
  std::vector<std::uint8_t> code_of;  // of each code of the bundle

  std::uint32_t n_codes() const { return n_bins + (has_missing ? 1U : 0U); }
  std::uint32_t missing_code() const { return n_bins; }
};

// A byte of each row: a column, or a bundle of them.
struct CodeSlot {
  std::uint32_t start = 0;    // of its codes in a histogram
  std::uint32_t n_codes = 0;  // at most 256
};

// Slots [first, first + width) whose histograms fit into the nearest cache together.
struct SlotGroup {
  std::uint32_t first = 0;
  std::uint32_t width = 0;
};

constexpr std::uint32_t max_group_width = 16;

// The codes of one column, wherever they lie.
struct BinCodes {
  const std::uint8_t* of_first = nullptr;
  std::size_t stride = 1;  // from row to row

  std::uint8_t operator[](std::size_t row) const { return of_first[row * stride]; }
};

class BinnedMatrix : public RowMatrix {
 public:
  // max_bins: at most 255. Cuts are found on at most max_cut_rows rows, of those given if any are.
  // weights: of the rows (null: all alike); a row of weight w counts as w rows.
  BinnedMatrix(const Table& table, std::uint32_t max_bins, int n_threads,
               std::span<const common::Row> among = {}, const double* weights = nullptr);

  // Room for the rows of a part of a table, by bins that were found for the whole of it: of each
  // column cuts or bin_of and n_bins count. `write` takes rows, a piece at a time, and notes where
  // values are missing; `complete` says where some are in any part. No two columns share a byte
  // here, since every part must have the same layout, and there are no codes by column.
  BinnedMatrix(std::vector<BinnedColumn> bins, std::size_t n_rows);
  void write(const Table& piece, std::size_t first, int n_threads);
  void complete(std::span<const std::int64_t> missing);

  // Other rows by the bins of these; only codes by column.
  BinnedMatrix(const Table& table, const BinnedMatrix& like, int n_threads);

  // Says that a column holds numbers of the categories of another one.
  void derive(std::size_t f, std::size_t source, std::vector<double> of_category);

  // Numbers of rows of each code, one column after another: of these rows, and, where they are a
  // part of a table, those that all of it has.
  std::vector<std::int64_t> code_counts() const;
  void set_code_counts(std::span<const std::int64_t> counts);

  std::size_t n_rows() const override { return n_rows_; }
  std::size_t n_features() const { return columns_.size(); }
  std::uint32_t n_codes() const { return n_codes_; }  // of a histogram of all slots
  const CodeSlot& slot(std::size_t s) const { return slots_[s]; }
  const BinnedColumn& column(std::size_t f) const { return columns_[f]; }
  bool only_by_row() const { return only_by_row_; }
  // Unless they are only by row.
  const std::uint8_t* codes(std::size_t f) const { return by_column_.data() + f * n_rows_; }
  // Either way; bundles share a byte of a row, but are never only by row.
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

// Rows that cuts are found on, at most.
constexpr std::size_t max_cut_rows = 200'000;

// The rows that cuts of a table with n_rows rows are found on, ascending.
std::vector<std::uint64_t> sample_rows(std::uint64_t n_rows);

// Cuts of a numeric column: distinct values ascending, and how many rows have each.
std::vector<double> find_cuts(std::span<const double> values, std::span<const std::uint64_t> counts,
                              std::uint32_t max_bins);

// … of the values of sampled rows in any order, NaN where missing.
std::vector<double> find_cuts(std::span<const float> values, std::uint32_t max_bins);
std::vector<double> find_cuts(std::span<const double> values, std::uint32_t max_bins);

// Weights as integers: multiples of a power of two, so fine that the sum of n weights of at most
// `largest` stays below 2^53. Positive weights are at least 1. Empty if no weight is positive.
std::vector<std::uint64_t> weight_units(std::span<const double> weights, double largest,
                                        std::uint64_t n);

// Cuts of the values of sampled rows with such weights: those of rows repeated so often. Rows of
// weight zero do not count.
std::vector<double> find_weighted_cuts(std::span<const float> values,
                                       std::span<const std::uint64_t> units,
                                       std::uint32_t max_bins);
std::vector<double> find_weighted_cuts(std::span<const double> values,
                                       std::span<const std::uint64_t> units,
                                       std::uint32_t max_bins);

// Bins of a column of categories, from how many rows (or how much weight) each has.
std::vector<std::uint8_t> bin_categories(std::span<const std::uint64_t> counts,
                                         std::uint32_t max_bins);

}  // namespace spinney::table
