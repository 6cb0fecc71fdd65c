#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "spinney/common/random.h"
#include "spinney/table/coded_column.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::table;
using common::Row;

namespace {

constexpr double missing = std::numeric_limits<double>::quiet_NaN();

// The reference computes ranks with a map; missing values have the last code.
void check_coding(const std::vector<double>& values, const std::vector<Row>& rows,
                  bool allow_implicit, const Column& column) {
  Table table;
  table.n_rows = values.size();
  table.columns = {column};
  std::vector<std::uint32_t> labels(values.size());
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = i % 3;
  const EntryLayout layout = EntryLayout::make(values.size(), 3);
  const CodingRows sample{rows.data(), static_cast<Row>(rows.size()), labels.data()};
  const auto coded = code_table(table, sample, layout, allow_implicit, 1);
  const CodedColumn& out = coded[0];

  std::map<double, common::Code> rank;
  Row n_missing = 0;
  for (const Row row : rows) {
    if (std::isnan(values[row])) {
      ++n_missing;
    } else {
      rank[values[row]] = 0;
    }
  }
  common::Code next = 0;
  for (auto& [value, code] : rank) code = next++;
  CHECK(out.missing_code == next);
  CHECK(out.has_missing == (n_missing > 0));
  const auto expected = [&](Row row) {
    return std::isnan(values[row]) ? out.missing_code : rank[values[row]];
  };
  CHECK(std::is_sorted(out.entries.get(), out.entries.get() + out.n_entries));
  std::vector<bool> listed(values.size());
  for (Row i = 0; i < out.n_entries; ++i) {
    const Row row = layout.row(out.entries[i]);
    CHECK(!listed[row]);
    listed[row] = true;
    CHECK(layout.code(out.entries[i]) == expected(row));
    CHECK(layout.label(out.entries[i]) == labels[row]);
  }
  for (const Row row : rows) {
    if (listed[row]) continue;
    CHECK(out.has_implicit);
    CHECK(expected(row) == out.implicit_code);
    CHECK(out.implicit_value == values[row] ||
          (std::isnan(out.implicit_value) && std::isnan(values[row])));
  }
  if (!allow_implicit) CHECK(out.n_entries == rows.size());
}

std::vector<double> draw(common::Stream& stream, std::size_t n, int kind) {
  std::vector<double> values(n);
  for (double& value : values) {
    switch (kind) {
      case 0:  // continuous, beyond float32
        value = stream.uniform() * 2 - 1;
        break;
      case 1:  // adjacent doubles that are equal as float32
        value = 1.0 + static_cast<double>(stream.below(5)) * 0x1.0p-52;
        break;
      case 2:  // small integers
        value = static_cast<double>(stream.below(9)) - 4;
        break;
      case 3:  // mostly one value
        value = stream.below(10) == 0 ? stream.uniform() : 0.5;
        break;
      case 4:  // mostly missing
        value = stream.below(4) == 0 ? static_cast<double>(stream.below(3)) : missing;
        break;
      case 5:  // both zeros, halves, some missing
        value = stream.below(7) == 0 ? missing
                                     : (stream.below(2) == 0 ? -0.0 : 0.0) +
                                           0.5 * static_cast<double>(stream.below(3)) - 0.5;
        break;
      default:  // huge and tiny
        value = (stream.below(2) == 0 ? -1 : 1) *
                std::ldexp(1.0, static_cast<int>(stream.below(2000)) - 1000);
    }
  }
  return values;
}

}  // namespace

TEST(coding_gives_dense_ranks) {
  common::Stream stream(11, common::Purpose::rows, 0);
  for (int kind = 0; kind < 7; ++kind) {
    for (const std::size_t n : {1, 2, 5, 60, 700}) {
      for (const bool allow_implicit : {false, true}) {
        const std::vector<double> values = draw(stream, n, kind);
        std::vector<Row> rows;
        for (std::size_t row = 0; row < n; ++row) {
          if (n < 5 || stream.below(5) != 0) rows.push_back(static_cast<Row>(row));
        }
        Column column;
        column.data = reinterpret_cast<const std::byte*>(values.data());
        column.stride = sizeof(double);
        check_coding(values, rows, allow_implicit, column);
      }
    }
  }
}

TEST(sparse_columns_leave_their_zeros_implicit) {
  common::Stream stream(12, common::Purpose::rows, 0);
  for (int round = 0; round < 60; ++round) {
    const std::size_t n = 1 + stream.below(50);
    std::vector<double> values(n);
    std::vector<double> stored;
    std::vector<std::int32_t> stored_rows;
    for (std::size_t row = 0; row < n; ++row) {
      if (stream.below(3) != 0) continue;
      values[row] = static_cast<double>(stream.below(5)) - 2;  // includes explicit zeros
      stored.push_back(values[row]);
      stored_rows.push_back(static_cast<std::int32_t>(row));
    }
    std::vector<Row> rows(n);
    std::iota(rows.begin(), rows.end(), 0U);
    Column column;
    column.kind = ColumnKind::sparse;
    column.data = reinterpret_cast<const std::byte*>(stored.data());
    column.stride = sizeof(double);
    column.rows = stored_rows.data();
    column.n_stored = stored.size();
    check_coding(values, rows, true, column);
    check_coding(values, rows, false, column);
  }
}

TEST(entries_pack_code_row_and_label) {
  for (const std::uint64_t n_rows : {1ULL, 2ULL, 3ULL, 1000ULL, 1ULL << 20, (1ULL << 32) - 2}) {
    const EntryLayout layout = EntryLayout::make(n_rows, 5);
    const auto row = static_cast<Row>(n_rows - 1);
    const auto code = static_cast<common::Code>(n_rows);
    const Entry entry = layout.pack(code, row, layout.label_bits > 0 ? 4 : 0);
    CHECK(layout.code(entry) == code);
    CHECK(layout.row(entry) == row);
    if (layout.label_bits > 0) CHECK(layout.label(entry) == 4);
  }
}

TEST(coding_supports_edge_cases) {
  const std::vector<Row> all{0, 1, 2, 3, 4, 5};
  const auto check = [&](const std::vector<double>& values, const std::vector<Row>& rows) {
    Column column;
    column.data = reinterpret_cast<const std::byte*>(values.data());
    column.stride = sizeof(double);
    for (const bool allow_implicit : {false, true}) {
      check_coding(values, rows, allow_implicit, column);
    }
  };
  check({1, 2, 3, 4, 5, 6}, {});                                       // no rows
  check({missing, missing, missing, missing, missing, missing}, all);  // all missing
  check({4, 4, 4, 4, 4, 4}, all);                                      // constant
  check({0.0, -0.0, 0.0, -0.0, 0.0, -0.0}, all);                       // zeros are equal
  check({1, missing, 1, missing, 1, missing}, all);                    // ties of value and missing
  check({-1e300, 1e300, 5e-324, -5e-324, 0, missing}, all);
  check({16777216, 16777217, -16777216, 0, 1, 2}, all);  // beyond the range of the counting sort
  check({1, 2, 3, 4, 5, 6}, {1, 4});                     // a sample
}

TEST(categories_keep_their_codes) {
  const std::vector<std::int32_t> codes{2, 0, -1, 2, 7, 2, 2};  // −1 and 7 are missing
  Table table;
  table.n_rows = codes.size();
  Column column;
  column.kind = ColumnKind::categorical;
  column.dtype = Dtype::int32;
  column.data = reinterpret_cast<const std::byte*>(codes.data());
  column.stride = sizeof(std::int32_t);
  column.n_categories = 4;
  table.columns = {column};
  std::vector<Row> rows(codes.size());
  std::iota(rows.begin(), rows.end(), Row{0});
  const EntryLayout layout = EntryLayout::make(codes.size(), 0);
  for (const bool allow_implicit : {false, true}) {
    const auto coded = code_table(table, {rows.data(), static_cast<Row>(rows.size()), nullptr},
                                  layout, allow_implicit, 1);
    const CodedColumn& out = coded[0];
    CHECK(out.categorical && out.has_missing && out.missing_code == 4);
    CHECK(out.has_implicit == allow_implicit);  // code 2: four of seven rows
    if (allow_implicit) CHECK(out.implicit_code == 2);
    CHECK(out.n_entries == (allow_implicit ? 3 : 7));
    for (Row i = 0; i < out.n_entries; ++i) {
      const Row row = layout.row(out.entries[i]);
      const std::int32_t code = codes[row] < 0 || codes[row] >= 4 ? 4 : codes[row];
      CHECK(layout.code(out.entries[i]) == static_cast<common::Code>(code));
    }
  }
}
