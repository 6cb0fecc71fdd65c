// Tables stored by row and by column: codes, values, sorted rows and blocks of rows.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "spinney/common/check.h"
#include "spinney/common/random.h"
#include "spinney/table/code_matrix.h"
#include "spinney/table/exact_matrix.h"
#include "spinney/table/row_block.h"
#include "spinney/table/value_matrix.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::table;
using common::Row;

namespace {

constexpr double missing = std::numeric_limits<double>::quiet_NaN();

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

struct Data {
  std::size_t n = 0;
  std::vector<double> numbers;  // two columns, row-major
  std::vector<float> floats;
  std::vector<std::int32_t> categories;
  std::vector<double> stored;  // sparse
  std::vector<std::int32_t> stored_rows;

  Table row_major() const {
    Table table;
    table.n_rows = n;
    for (std::size_t f = 0; f < 2; ++f) {
      Column column;
      column.data = reinterpret_cast<const std::byte*>(numbers.data() + f);
      column.stride = 2 * sizeof(double);
      table.columns.push_back(column);
    }
    return table;
  }
  Table mixed() const {
    Table table = row_major();
    Column column;
    column.dtype = Dtype::float32;
    column.data = reinterpret_cast<const std::byte*>(floats.data());
    column.stride = sizeof(float);
    table.columns.push_back(column);
    column = {};
    column.kind = ColumnKind::categorical;
    column.dtype = Dtype::int32;
    column.data = reinterpret_cast<const std::byte*>(categories.data());
    column.stride = sizeof(std::int32_t);
    column.n_categories = 4;
    table.columns.push_back(column);
    column = {};
    column.kind = ColumnKind::sparse;
    column.data = reinterpret_cast<const std::byte*>(stored.data());
    column.stride = sizeof(double);
    column.rows = stored_rows.data();
    column.n_stored = stored.size();
    table.columns.push_back(column);
    return table;
  }
};

Data draw(std::size_t n, std::uint64_t n_values) {
  common::Stream stream(n_values, common::Purpose::rows, n);
  Data data;
  data.n = n;
  for (std::size_t i = 0; i < n; ++i) {
    data.numbers.push_back(stream.below(9) == 0 ? missing
                                                : static_cast<double>(stream.below(n_values)));
    data.numbers.push_back(stream.uniform());
    data.floats.push_back(static_cast<float>(stream.uniform()));
    data.categories.push_back(static_cast<std::int32_t>(stream.below(6)) - 1);  // −1, 4: missing
    if (stream.below(4) != 0) continue;
    data.stored.push_back(static_cast<double>(stream.below(5)) - 2);
    data.stored_rows.push_back(static_cast<std::int32_t>(i));
  }
  return data;
}

}  // namespace

TEST(columns_return_their_values) {
  const Data data = draw(50, 9);
  const Table table = data.mixed();
  CHECK(data.row_major().is_row_major() && !table.is_row_major());
  for (std::size_t row = 0; row < data.n; ++row) {
    CHECK(same(table.columns[1].value(row), data.numbers[2 * row + 1]));
    CHECK(table.columns[2].value(row) == static_cast<double>(data.floats[row]));
    const std::int32_t code =
        data.categories[row] >= 0 && data.categories[row] < 4 ? data.categories[row] : -1;
    CHECK(table.columns[3].category(row) == code);
    CHECK(code < 0 ? std::isnan(table.columns[3].value(row)) : table.columns[3].value(row) == code);
    const auto* found =
        std::find(data.stored_rows.data(), data.stored_rows.data() + data.stored_rows.size(),
                  static_cast<std::int32_t>(row));
    const auto at = static_cast<std::size_t>(found - data.stored_rows.data());
    CHECK(table.columns[4].value(row) == (at < data.stored.size() ? data.stored[at] : 0.0));
  }
}

TEST(code_matrix_has_the_same_codes_by_row_and_by_column) {
  for (const std::size_t n : {1, 200, 300, 70'000}) {  // codes of 1, 2 and 4 bytes
    const Data data = draw(n, 9);
    const Table table = data.mixed();
    const CodeMatrix matrix(table, 2);
    std::size_t max_codes = 0;
    for (std::size_t f = 0; f < matrix.n_features(); ++f) {
      max_codes = std::max<std::size_t>(max_codes, matrix.column(f).missing_code + 1);
      std::vector<common::Code> by_column;
      matrix.visit_column(f, [&](const auto* codes) { by_column.assign(codes, codes + n); });
      bool equal = true;
      matrix.visit([&](const auto* codes) {
        for (std::size_t row = 0; row < n; ++row) {
          equal &= codes[row * matrix.n_features() + f] == by_column[row];
        }
      });
      CHECK(equal);
      // Codes are in the order of the values.
      for (std::size_t row = 1; row < std::min<std::size_t>(n, 300); ++row) {
        const double a = table.columns[f].value(row - 1);
        const double b = table.columns[f].value(row);
        const bool less = std::isnan(b) ? !std::isnan(a) : a < b;
        CHECK(less == (by_column[row - 1] < by_column[row]));
      }
    }
    CHECK(matrix.max_codes() == max_codes);
  }
}

TEST(value_matrix_has_the_values_of_the_table) {
  const Data data = draw(60, 9);
  for (const Table& table : {data.row_major(), data.mixed()}) {
    const ValueMatrix matrix(table, 1);
    for (std::size_t f = 0; f < table.n_features(); ++f) {
      matrix.visit([&](const auto* rows, std::size_t stride) {
        for (std::size_t row = 0; row < data.n; ++row) {
          CHECK(same(static_cast<double>(rows[row * stride + f]), table.columns[f].value(row)));
        }
      });
      matrix.visit_column(f, [&](const auto* values) {
        for (std::size_t row = 0; row < data.n; ++row) {
          CHECK(same(static_cast<double>(values[row]), table.columns[f].value(row)));
        }
      });
    }
  }
}

TEST(exact_matrix_sorts_rows_by_value) {
  const Data data = draw(80, 5);
  const Table table = data.mixed();
  const ExactMatrix matrix(table, true, 1);
  for (std::size_t f = 0; f < matrix.n_features(); ++f) {
    const ExactColumn& column = matrix.column(f);
    CHECK((column.n_categories > 0) == column.order.empty());
    for (std::size_t row = 0; row < data.n; ++row) {
      CHECK(same(column.values[row], table.columns[f].value(row)));
    }
    for (std::size_t i = 1; i < column.order.size(); ++i) {
      const double a = column.values[column.order[i - 1]];
      const double b = column.values[column.order[i]];
      CHECK(std::isnan(b) || a <= b);
      if (same(a, b)) CHECK(column.order[i - 1] < column.order[i]);
    }
  }
  CHECK(ExactMatrix(table, false, 1).column(0).order.empty());
}

TEST(row_reader_reads_all_kinds_of_columns) {
  Data data = draw(100, 9);
  const auto check = [&](const Table& table, const std::vector<std::int32_t>& n_categories) {
    const RowReader reader(table, n_categories);
    CHECK(reader.in_place() == table.is_row_major());
    CHECK(reader.max_rows() >= 8);
    reader.read(10, 50, [&](const auto* rows, std::size_t stride, bool may_miss) {
      CHECK(may_miss);
      for (std::size_t i = 0; i < 50; ++i) {
        for (std::size_t f = 0; f < table.n_features(); ++f) {
          CHECK(same(static_cast<double>(rows[i * stride + f]), table.columns[f].value(10 + i)));
        }
      }
    });
  };
  check(data.row_major(), {0, 0});
  check(data.mixed(), {0, 0, 0, 4, 0});
  const auto refuses = [](const auto& body) {
    try {
      body();
    } catch (const common::InputError&) {
      return true;
    }
    return false;
  };
  const std::vector<std::int32_t> one{0};
  const std::vector<std::int32_t> categorical{0, 3};
  CHECK(refuses([&] { RowReader(data.row_major(), one); }));
  CHECK(refuses([&] { RowReader(data.row_major(), categorical); }));
  data.numbers[41] = std::numeric_limits<double>::infinity();
  Table table = data.row_major();
  table.known_finite = false;
  const std::vector<std::int32_t> none{0, 0};
  const RowReader reader(table, none);
  const auto ignore = [](const auto*, std::size_t, bool) {};
  CHECK(refuses([&] { reader.read(0, 100, ignore); }));
  reader.read(0, 20, ignore);  // the infinite value is in row 20
}

TEST(special_values_are_found) {
  for (const double value :
       {1.0, -0.0, 1e308, 5e-324, missing, -missing, std::numeric_limits<double>::infinity(),
        -std::numeric_limits<double>::infinity()}) {
    std::vector<double> values(37, 2.0);
    values[20] = value;
    const SpecialValues found = find_special(values.data(), values.size());
    CHECK(found.infinite == std::isinf(value));
    CHECK(found.missing == std::isnan(value));
    std::vector<float> floats(values.begin(), values.end());
    floats[20] = std::isfinite(value) ? 3.0F : static_cast<float>(value);
    const SpecialValues single = find_special(floats.data(), floats.size());
    CHECK(single.infinite == std::isinf(value));
    CHECK(single.missing == std::isnan(value));
  }
}
