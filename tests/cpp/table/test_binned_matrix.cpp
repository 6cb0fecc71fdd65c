#include "spinney/table/binned_matrix.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "spinney/common/check.h"
#include "spinney/common/random.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::table;
using common::Row;

namespace {

constexpr double missing = std::numeric_limits<double>::quiet_NaN();

struct Data {
  std::vector<std::vector<double>> numeric;
  std::vector<std::vector<std::int32_t>> categorical;
  std::vector<std::int32_t> n_categories;

  std::size_t n_rows() const { return numeric.empty() ? categorical[0].size() : numeric[0].size(); }
  // Rows [first, first + n).
  Table rows(std::size_t first, std::size_t n) const {
    Table out;
    out.n_rows = n;
    for (const std::vector<double>& values : numeric) {
      Column column;
      column.data = reinterpret_cast<const std::byte*>(values.data() + first);
      column.stride = sizeof(double);
      out.columns.push_back(column);
    }
    for (std::size_t f = 0; f < categorical.size(); ++f) {
      Column column;
      column.kind = ColumnKind::categorical;
      column.dtype = Dtype::int32;
      column.data = reinterpret_cast<const std::byte*>(categorical[f].data() + first);
      column.stride = sizeof(std::int32_t);
      column.n_categories = n_categories[f];
      out.columns.push_back(column);
    }
    return out;
  }
  Table table() const { return rows(0, n_rows()); }
};

Data draw(std::size_t n, std::uint64_t seed) {
  common::Stream stream(seed, common::Purpose::rows, n);
  Data data;
  data.numeric.resize(5);
  data.categorical.resize(2);
  data.n_categories = {3, 40};
  for (std::size_t i = 0; i < n; ++i) {
    data.numeric[0].push_back(stream.uniform());
    data.numeric[1].push_back(stream.below(4) == 0 ? missing
                                                   : static_cast<double>(stream.below(6)));
    data.numeric[2].push_back(stream.below(3) == 0 ? 0.0 : std::exp(20 * stream.uniform()));
    data.numeric[3].push_back(7);        // constant
    data.numeric[4].push_back(missing);  // all missing
    data.categorical[0].push_back(static_cast<std::int32_t>(stream.below(3)));
    data.categorical[1].push_back(
        stream.below(5) == 0 ? -1 : static_cast<std::int32_t>(stream.below(40)));
  }
  return data;
}

std::uint32_t expected_code(const Data& data, const BinnedMatrix& matrix, std::size_t f,
                            std::size_t row) {
  const BinnedColumn& column = matrix.column(f);
  if (f < data.numeric.size()) {
    const double value = data.numeric[f][row];
    if (std::isnan(value)) return column.missing_code();
    return static_cast<std::uint32_t>(std::count_if(column.cuts.begin(), column.cuts.end(),
                                                    [&](double cut) { return cut < value; }));
  }
  const std::int32_t category = data.categorical[f - data.numeric.size()][row];
  return category < 0 ? column.missing_code() : column.bin_of[static_cast<std::size_t>(category)];
}

// The code of a column in the row storage.
std::uint32_t code_in_row(const BinnedMatrix& matrix, std::size_t f, std::size_t row) {
  const BinnedColumn& column = matrix.column(f);
  const std::uint8_t byte =
      matrix.row_codes()[row * matrix.stride() + static_cast<std::size_t>(column.slot)];
  return column.bundled ? column.code_of[byte] : byte;
}

void check_matrix(const Data& data, const BinnedMatrix& matrix) {
  for (std::size_t f = 0; f < matrix.n_features(); ++f) {
    const BinnedColumn& column = matrix.column(f);
    CHECK(std::is_sorted(column.cuts.begin(), column.cuts.end()));
    std::vector<std::uint32_t> counts(column.n_codes());
    for (std::size_t row = 0; row < data.n_rows(); ++row) {
      const std::uint32_t code = expected_code(data, matrix, f, row);
      CHECK(code < column.n_codes());
      CHECK(matrix.column_codes(f)[row] == code);
      if (column.slot >= 0) CHECK(code_in_row(matrix, f, row) == code);
      ++counts[code];
    }
    CHECK(counts == column.n_rows_of);
    CHECK((column.slot < 0) == (column.n_codes() < 2));
  }
}

template <class Body>
bool refuses(const Body& body) {
  try {
    body();
  } catch (const common::InputError&) {
    return true;
  }
  return false;
}

}  // namespace

TEST(bins_match_a_linear_search) {
  for (const std::size_t n : {1, 2, 3, 100, 5000}) {
    for (const std::uint32_t max_bins : {2U, 16U, 255U}) {
      const Data data = draw(n, n + max_bins);
      const BinnedMatrix matrix(data.table(), max_bins, 2);
      check_matrix(data, matrix);
      for (std::size_t f = 0; f < matrix.n_features(); ++f) {
        CHECK(matrix.column(f).n_bins >= 1 && matrix.column(f).n_bins <= max_bins);
      }
      CHECK(matrix.column(3).n_bins == 1 && !matrix.column(3).has_missing);
      CHECK(matrix.column(4).n_bins == 1 && matrix.column(4).has_missing);
    }
  }
}

TEST(few_values_have_a_bin_each) {
  Data data;
  data.numeric = {{3, 1, 2, 2, 3, -1, 1, 2}};
  const BinnedMatrix matrix(data.table(), 4, 1);
  CHECK(matrix.column(0).n_bins == 4);
  CHECK(matrix.column(0).n_rows_of == (std::vector<std::uint32_t>{1, 2, 3, 2}));
}

TEST(one_hot_columns_share_a_byte) {
  common::Stream stream(4, common::Purpose::rows, 0);
  Data data;
  data.numeric.resize(12);
  for (std::size_t i = 0; i < 500; ++i) {
    const std::uint64_t hot = stream.below(10);
    for (std::size_t f = 0; f < 10; ++f) data.numeric[f].push_back(f == hot ? 1.0 : 0.0);
    data.numeric[10].push_back(stream.uniform());
    data.numeric[11].push_back(stream.below(10) == 0 ? static_cast<double>(stream.below(3)) : 5.0);
  }
  const BinnedMatrix matrix(data.table(), 64, 1);
  check_matrix(data, matrix);
  for (std::size_t f = 1; f < 10; ++f) {
    CHECK(matrix.column(f).bundled);
    CHECK(matrix.column(f).slot == matrix.column(0).slot);
    CHECK(matrix.column(f).start > matrix.column(f - 1).start);
  }
  CHECK(!matrix.column(10).bundled);
  CHECK(matrix.column(11).slot != matrix.column(0).slot);  // conflicts with the one-hot columns
  CHECK(matrix.stride() <= 4);
  std::uint32_t n_slots = 0;
  for (const SlotGroup& group : matrix.groups()) {
    CHECK(group.first == n_slots);
    CHECK(group.width <= max_group_width);
    n_slots += group.width;
  }
}

TEST(blocks_of_rows_give_the_codes_of_the_whole_table) {
  const Data data = draw(300, 8);
  const BinnedMatrix whole(data.table(), 32, 1);
  std::vector<BinnedColumn> bins;
  std::vector<std::int64_t> any_missing;
  for (std::size_t f = 0; f < whole.n_features(); ++f) {
    BinnedColumn column;
    column.categorical = whole.column(f).categorical;
    column.n_bins = whole.column(f).n_bins;
    column.cuts = whole.column(f).cuts;
    column.bin_of = whole.column(f).bin_of;
    bins.push_back(column);
    any_missing.push_back(whole.column(f).has_missing ? 1 : 0);
  }
  BinnedMatrix parts(bins, 300);
  parts.write(data.rows(0, 120), 0, 1);
  parts.write(data.rows(120, 180), 120, 2);
  CHECK(parts.column(1).has_missing && !parts.column(0).has_missing);
  any_missing[0] = 1;  // another worker has a missing value
  parts.complete(any_missing);
  CHECK(parts.column(0).has_missing);
  parts.set_code_counts(parts.code_counts());
  for (std::size_t f = 0; f < whole.n_features(); ++f) {
    CHECK(!parts.column(f).bundled);
    std::vector<std::uint32_t> counts = whole.column(f).n_rows_of;
    counts.resize(parts.column(f).n_codes());
    CHECK(parts.column(f).n_rows_of == counts);
    for (std::size_t row = 0; row < 300; ++row) {
      CHECK(parts.column_codes(f)[row] == whole.column_codes(f)[row]);
    }
  }
  const BinnedMatrix like(data.rows(100, 50), whole, 1);
  for (std::size_t row = 0; row < 50; ++row) {
    CHECK(like.codes(2)[row] == whole.codes(2)[100 + row]);
  }
}

TEST(binned_matrix_refuses_bad_input) {
  Data data = draw(20, 3);
  const BinnedMatrix matrix(data.table(), 8, 1);
  CHECK(refuses([&] { BinnedMatrix(data.table(), 1, 1); }));
  CHECK(refuses([&] { BinnedMatrix(data.table(), 256, 1); }));
  Table fewer = data.table();
  fewer.columns.pop_back();
  CHECK(refuses([&] { BinnedMatrix(fewer, matrix, 1); }));
  std::vector<BinnedColumn> bins(7);
  CHECK(refuses([&] {
    BinnedMatrix part(bins, 10);
    part.write(data.table(), 0, 1);  // too many rows
  }));
  bins[0].n_bins = 3;  // but no cuts
  CHECK(refuses([&] { BinnedMatrix(bins, 10); }));
  BinnedMatrix own(data.table(), 8, 1);
  CHECK(refuses([&] { own.derive(2, 2, {}); }));
  CHECK(refuses([&] { own.set_code_counts({}); }));
  data.numeric[0][5] = std::numeric_limits<double>::infinity();
  CHECK(refuses([&] { BinnedMatrix(data.table(), 8, 1); }));
  CHECK(refuses([&] { BinnedMatrix(data.table(), matrix, 1); }));
}

TEST(cuts_give_bins_of_similar_size) {
  common::Stream stream(6, common::Purpose::rows, 0);
  std::vector<double> values;
  for (int i = 0; i < 10000; ++i) values.push_back(stream.uniform());
  const std::vector<double> cuts = find_cuts(values, 20);
  CHECK(cuts.size() == 19);
  std::vector<int> sizes(20);
  for (const double value : values) {
    ++sizes[static_cast<std::size_t>(std::lower_bound(cuts.begin(), cuts.end(), value) -
                                     cuts.begin())];
  }
  for (const int size : sizes) CHECK(size >= 490 && size <= 510);
  // A frequent value has its own bin.
  for (int i = 0; i < 5000; ++i) values[static_cast<std::size_t>(i)] = 0.5;
  const std::vector<double> skewed = find_cuts(values, 8);
  const auto bin = [&](double value) {
    return std::lower_bound(skewed.begin(), skewed.end(), value) - skewed.begin();
  };
  CHECK(bin(0.5) != bin(std::nextafter(0.5, 0.0) - 1e-3));
  CHECK(bin(0.5) != bin(0.501));
}

TEST(weighted_cuts_equal_cuts_of_repeated_rows) {
  common::Stream stream(7, common::Purpose::rows, 0);
  for (const std::size_t n : {5, 300, 6000}) {
    std::vector<double> values;
    std::vector<std::uint64_t> units;
    std::vector<double> repeated;
    for (std::size_t i = 0; i < n; ++i) {
      values.push_back(stream.below(9) == 0 ? missing : std::floor(stream.uniform() * 1000) / 8);
      units.push_back(stream.below(4));
      repeated.insert(repeated.end(), units.back(), values.back());
    }
    CHECK(find_weighted_cuts(values, units, 16) == find_cuts(repeated, 16));
    const std::vector<float> floats(values.begin(), values.end());
    CHECK(find_weighted_cuts(floats, units, 16) == find_weighted_cuts(values, units, 16));
  }
  CHECK(find_cuts(std::vector<double>{}, 8).empty());
  CHECK(find_cuts(std::vector<double>{missing, missing}, 8).empty());
}

TEST(weight_units_are_proportional) {
  const std::vector<double> weights{0.0, 0.5, 1.0, 3.0, 1e-300};
  const std::vector<std::uint64_t> units = weight_units(weights, 3.0, weights.size());
  CHECK(units[0] == 0 && units[4] == 1);
  CHECK(units[2] == 2 * units[1] && units[3] == 6 * units[1]);
  CHECK(units[3] * weights.size() < std::uint64_t{1} << 53);
  CHECK(weight_units(weights, 0.0, 5).empty());
  CHECK(weight_units(weights, std::numeric_limits<double>::infinity(), 5).empty());
}

TEST(rare_categories_share_the_last_bin) {
  const std::vector<std::uint64_t> counts{1, 50, 2, 40, 30};
  CHECK(bin_categories(counts, 5) == (std::vector<std::uint8_t>{0, 1, 2, 3, 4}));
  CHECK(bin_categories(counts, 3) == (std::vector<std::uint8_t>{2, 0, 2, 1, 2}));
  CHECK(bin_categories({}, 3).empty());
}

TEST(sampled_rows_ascend_and_cover_the_table) {
  CHECK(sample_rows(0).empty());
  CHECK(sample_rows(3) == (std::vector<std::uint64_t>{0, 1, 2}));
  const std::uint64_t n = 3 * max_cut_rows + 7;
  const std::vector<std::uint64_t> rows = sample_rows(n);
  CHECK(rows.size() == max_cut_rows);
  CHECK(std::is_sorted(rows.begin(), rows.end()));
  CHECK(rows.front() < 4 && rows.back() >= n - 4);
}
