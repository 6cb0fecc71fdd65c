#include "spinney/boosting/common_split.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "spinney/boosting/histogram.h"
#include "spinney/common/random.h"
#include "spinney/table/binned_matrix.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::boosting;

namespace {

// Numeric columns with missing values, binary columns (bundled) and a categorical one.
struct SplitData {
  std::vector<double> x;  // row-major
  std::vector<std::int32_t> category;
  std::vector<float> first;
  std::vector<float> second;
  table::Table table;

  explicit SplitData(std::size_t n) {
    constexpr std::size_t d = 9;
    common::Stream stream(3, common::Purpose::rows, n);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t hot = stream.below(6);
      for (std::size_t f = 0; f < 3; ++f) {
        x.push_back(f > 0 && stream.below(9) == 0 ? std::nan("") : stream.uniform());
      }
      for (std::size_t f = 0; f < 6; ++f) x.push_back(f == hot ? 1.0 : 0.0);
      category.push_back(static_cast<std::int32_t>(stream.below(8)) - 1);
      first.push_back(static_cast<float>(stream.uniform() - x[i * d]));
      second.push_back(static_cast<float>(0.1 + stream.uniform()));
    }
    table.n_rows = n;
    for (std::size_t f = 0; f < d; ++f) {
      table::Column column;
      column.data = reinterpret_cast<const std::byte*>(x.data() + f);
      column.stride = static_cast<std::ptrdiff_t>(d * sizeof(double));
      table.columns.push_back(column);
    }
    table::Column column;
    column.kind = table::ColumnKind::categorical;
    column.dtype = table::Dtype::int32;
    column.n_categories = 7;
    column.data = reinterpret_cast<const std::byte*>(category.data());
    column.stride = sizeof(std::int32_t);
    table.columns.push_back(column);
  }
};

}  // namespace

TEST(common_split_is_the_same_without_histograms) {
  constexpr std::size_t n = 300;
  SplitData data(n);
  const table::BinnedMatrix matrix(data.table, 255, 1);
  std::vector<common::Row> rows[2];  // rows of two nodes
  for (std::size_t i = 0; i < n; ++i) {
    if (i % 5 != 0) rows[i % 3 == 0 ? 0 : 1].push_back(static_cast<common::Row>(i));
  }
  std::vector<PackedSum> sums(n);
  const PackedScale scale = pack_gradients({data.first.data(), data.second.data()}, {}, nullptr, n,
                                           false, 1, {}, sums.data());
  HistogramBuilder builder(matrix, 1);
  std::vector<PackedSum> histograms[2];
  std::vector<NodeToSplit> counted;
  for (std::size_t k = 0; k < 2; ++k) {
    histograms[k].resize(matrix.n_codes());
    builder.build(rows[k].data(), {sums.data(), true}, rows[k].size(), histograms[k].data());
    NodeToSplit node;
    node.histogram = histograms[k].data();
    node.sums = {sums.data(), true};
    for (const common::Row row : rows[k]) node.total += sums[row];
    node.n_rows = rows[k].size();
    node.n_counted = static_cast<double>(node.n_rows);
    node.rows = rows[k].data();
    node.scale = scale;
    counted.push_back(node);
  }
  std::vector<NodeToSplit> bare = counted;
  for (NodeToSplit& node : bare) node.histogram = nullptr;
  SplitRules rules;
  rules.l2_regularization = 1;
  rules.min_hessian_leaf = 1e-3;
  for (std::size_t only = 0; only <= matrix.n_features(); ++only) {  // each column, then all
    std::vector<std::uint8_t> allowed(matrix.n_features(), only == matrix.n_features() ? 1 : 0);
    if (only < allowed.size()) allowed[only] = 1;
    counted[0].allowed = bare[0].allowed = allowed.data();
    const BinSplit expected = find_common_split(matrix, counted, nullptr, rules, 1);
    const BinSplit found = find_common_split(matrix, bare, nullptr, rules, 2);
    CHECK(expected.found());
    CHECK(found.gain == expected.gain && found.feature == expected.feature);
    CHECK(found.code == expected.code && found.missing_left == expected.missing_left);
    CHECK(found.left_codes == expected.left_codes);
    for (std::size_t k = 0; k < 2; ++k) {
      CHECK(left_sum(matrix, bare[k], found) == left_sum(matrix, counted[k], expected));
    }
  }
}
