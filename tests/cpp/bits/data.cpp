#include <cmath>
#include <limits>

#include "bits.h"
#include "spinney/common/elementary.h"
#include "spinney/common/random.h"

namespace bits {

using namespace spinney;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::int32_t n_categories_of_column = 9;

template <class T>
void add_columns(const std::vector<T>& x, std::size_t d, table::Dtype dtype, table::Table& table) {
  for (std::size_t f = 0; f < d; ++f) {
    table::Column column;
    column.dtype = dtype;
    column.data = reinterpret_cast<const std::byte*>(x.data() + f);
    column.stride = static_cast<std::ptrdiff_t>(d * sizeof(T));
    table.columns.push_back(column);
  }
}

}  // namespace

Data::Data(std::size_t n, std::uint64_t seed, bool with_missing) : n_rows(n) {
  common::Stream stream(seed, common::Purpose::rows, 0);
  two.resize(2 * n);
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> row;
    for (std::size_t f = 0; f < n_numbers; ++f) row.push_back(4 * stream.uniform() - 2);
    row[3] = std::floor(3 * row[3]);
    row[4] = static_cast<double>(stream.below(3));
    const std::uint64_t c = stream.below(n_categories_of_column);
    const double noise = stream.uniform() - 0.5;
    const double score =
        2 * row[0] + common::sin(2 * row[1]) + row[2] * row[4] + static_cast<double>(c % 4) + noise;
    labels.push_back(score < 0.5 ? 0 : score < 3.5 ? 1 : 2);
    classes.push_back(static_cast<double>(labels.back()));
    sides.push_back(score + 3 * noise > 2 ? 1.0 : 0.0);
    y.push_back(score);
    positive.push_back(common::exp_unclamped(score / 4));
    two[i] = score;
    two[n + i] = row[5] - 3 * noise;
    weights.push_back(static_cast<double>(1 + stream.below(3)));
    fractions.push_back(0.25 + stream.uniform());
    for (double& value : row) {
      if (with_missing && stream.below(15) == 0) value = nan;
      x.push_back(value);
      narrow.push_back(static_cast<float>(value));
    }
    const bool is_missing = with_missing && stream.below(15) == 0;
    category.push_back(is_missing ? -1 : static_cast<std::int32_t>(c));
  }
}

table::Table Data::table() const {
  table::Table table;
  table.n_rows = n_rows;
  add_columns(x, n_numbers, table::Dtype::float64, table);
  table::Column column;
  column.kind = table::ColumnKind::categorical;
  column.dtype = table::Dtype::int32;
  column.n_categories = n_categories_of_column;
  column.data = reinterpret_cast<const std::byte*>(category.data());
  column.stride = sizeof(std::int32_t);
  table.columns.push_back(column);
  return table;
}

table::Table Data::narrow_table() const {
  table::Table table;
  table.n_rows = n_rows;
  add_columns(narrow, n_numbers, table::Dtype::float32, table);
  return table;
}

std::vector<std::int32_t> Data::n_categories() const {
  std::vector<std::int32_t> out(n_numbers, 0);
  out.push_back(n_categories_of_column);
  return out;
}

criterion::Targets Data::targets(criterion::CriterionKind kind) const {
  criterion::Targets targets;
  targets.n_rows = n_rows;
  if (criterion::is_classification(kind)) {
    targets.n_classes = {3};
    targets.labels = labels.data();
  } else {
    targets.values = kind == criterion::CriterionKind::poisson ? positive.data() : y.data();
  }
  return targets;
}

const Data& train() {
  static const Data data(700, 1, true);
  return data;
}

const Data& test() {
  static const Data data(333, 2, true);
  return data;
}

const Data& train_complete() {
  static const Data data(700, 3, false);
  return data;
}

const Data& test_complete() {
  static const Data data(333, 4, false);
  return data;
}

void add_tree(Hash& hash, const forest::Tree& tree) {
  hash.add(tree.left);
  hash.add(tree.right);
  hash.add(tree.feature);
  hash.add(tree.threshold);
  hash.add(tree.missing_left);
  hash.add(tree.impurity);
  hash.add(tree.n_rows);
  hash.add(tree.weight);
  hash.add(tree.value);
  hash.add(tree.category_start);
  hash.add(tree.category_bits);
}

}  // namespace bits
