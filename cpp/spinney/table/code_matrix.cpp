#include "spinney/table/code_matrix.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "spinney/common/parallel.h"

namespace spinney::table {

using common::parallel_for;
using common::worthwhile_threads;

namespace {

template <class T>
constexpr bool holds(std::size_t n_codes) {
  return n_codes <= std::size_t{std::numeric_limits<T>::max()} + 1;
}

template <class T>
ColumnCodes narrow(const CodedColumn& column, const EntryLayout& layout, std::size_t n_rows) {
  ColumnCodes out;
  out.width = static_cast<int>(sizeof(T));
  out.bytes.resize(n_rows * sizeof(T));
  T* const codes = reinterpret_cast<T*>(out.bytes.data());
  std::fill(codes, codes + n_rows, static_cast<T>(column.implicit_code));
  for (common::Row i = 0; i < column.n_entries; ++i) {
    codes[layout.row(column.entries[i])] = static_cast<T>(layout.code(column.entries[i]));
  }
  return out;
}

}  // namespace

CodeMatrix::CodeMatrix(const Table& table, int n_threads) {
  const std::size_t n_rows = table.n_rows;
  const std::size_t n_features = table.n_features();
  std::vector<common::Row> rows(n_rows);
  std::iota(rows.begin(), rows.end(), common::Row{0});
  const CodingRows sample{rows.data(), static_cast<common::Row>(n_rows), nullptr};
  EntryLayout layout;  // no labels
  columns_.resize(n_features);
  by_column_.resize(n_features);
  code_columns(table, sample, layout, true, n_threads, [&](std::size_t f, CodedColumn& column) {
    const std::size_t n_codes = std::size_t{column.missing_code} + 1;
    if (holds<std::uint8_t>(n_codes)) {
      by_column_[f] = narrow<std::uint8_t>(column, layout, n_rows);
    } else if (holds<std::uint16_t>(n_codes)) {
      by_column_[f] = narrow<std::uint16_t>(column, layout, n_rows);
    } else {
      by_column_[f] = narrow<std::uint32_t>(column, layout, n_rows);
    }
    column.entries.reset();
    columns_[f] = std::move(column);
  });
  width_ = 1;
  for (std::size_t f = 0; f < n_features; ++f) {
    width_ = std::max(width_, by_column_[f].width);
    max_codes_ = std::max(max_codes_, std::size_t{columns_[f].missing_code} + 1);
  }
  data_.resize((n_rows * n_features * static_cast<std::size_t>(width_) + 3) / 4);
  // Writes blocks of rows that stay in the cache for all columns.
  const std::size_t block = std::max<std::size_t>(1, 16'384 / std::max<std::size_t>(n_features, 1));
  const double work = 2.0 * static_cast<double>(n_rows) * static_cast<double>(n_features);
  parallel_for((n_rows + block - 1) / block, worthwhile_threads(work, n_threads),
               [&](std::size_t block_index, int) {
                 const std::size_t begin = block_index * block;
                 const std::size_t end = std::min(begin + block, n_rows);
                 visit([&](const auto* shared) {
                   using T = std::remove_const_t<std::remove_pointer_t<decltype(shared)>>;
                   T* const out = const_cast<T*>(shared);
                   for (std::size_t f = 0; f < n_features; ++f) {
                     visit_column(f, [&](const auto* codes) {
                       for (std::size_t row = begin; row < end; ++row) {
                         out[row * n_features + f] = static_cast<T>(codes[row]);
                       }
                     });
                   }
                 });
               });
}

}  // namespace spinney::table
