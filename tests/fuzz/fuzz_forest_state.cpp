// Fuzzes the reading of forests from flat arrays, as in a file with a valid checksum. For any
// bytes, from_state must throw InputError or build a forest that every reader can traverse.
//
// An input is a shape (a few bytes), then each array of ForestState in order: two bytes for the
// number of elements, then the elements. Two final bytes select renumbering and ownership.
// make_corpus.py writes such inputs from golden files.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "fuzz_bytes.h"
#include "spinney/common/check.h"
#include "spinney/forest/forest_state.h"
#include "spinney/forest/preorder.h"
#include "spinney/serving/block_scorer.h"
#include "spinney/serving/forest_reader.h"
#include "spinney/serving/quantiles.h"
#include "spinney/table/row_block.h"

namespace {

using namespace spinney;

// Rows with all kinds of values, enough of them to use every traversal.
struct Rows {
  std::vector<std::vector<double>> numbers;
  std::vector<std::vector<std::int32_t>> codes;
  table::Table table;

  Rows(std::span<const std::int32_t> n_categories, std::size_t n) {
    constexpr double values[] = {0.0, -1.5, 1e300, -1e-300, 0.25};
    table.n_rows = n;
    numbers.resize(n_categories.size());
    codes.resize(n_categories.size());
    for (std::size_t f = 0; f < n_categories.size(); ++f) {
      table::Column column;
      if (n_categories[f] > 0) {
        for (std::size_t i = 0; i < n; ++i) {
          codes[f].push_back(static_cast<std::int32_t>((i + f) % (n_categories[f] + 1)) - 1);
        }
        column.kind = table::ColumnKind::categorical;
        column.dtype = table::Dtype::int32;
        column.n_categories = n_categories[f];
        column.stride = 4;
        column.data = reinterpret_cast<const std::byte*>(codes[f].data());
      } else {
        for (std::size_t i = 0; i < n; ++i) {
          numbers[f].push_back(i % 7 == f ? std::numeric_limits<double>::quiet_NaN()
                                          : values[(i + f) % 5] * static_cast<double>(i % 3));
        }
        column.dtype = table::Dtype::float64;
        column.stride = 8;
        column.data = reinterpret_cast<const std::byte*>(numbers[f].data());
      }
      table.columns.push_back(column);
    }
  }
};

void read_everything(const forest::Forest& forest, std::size_t n_rows) {
  const Rows rows(forest.n_categories, n_rows);
  const std::size_t width = forest.shape.width();
  const std::size_t n_trees = forest.trees.size();
  std::vector<double> sums(n_rows * width);
  std::vector<double> squares(n_rows * width);
  std::vector<std::int64_t> leaves(n_rows * n_trees);
  std::vector<double> importances(n_trees * forest.n_features());
  serving::sum_predictions(forest, rows.table, false, 1, sums.data());
  serving::apply(forest, rows.table, 1, leaves.data());
  serving::sum_path_lengths(forest, rows.table, 1, squares.data());
  serving::impurity_importances(forest, 1, importances.data());
  if (criterion::is_classification(forest.shape.criterion)) {
    serving::sum_predictions(forest, rows.table, true, 1, sums.data());
    return;
  }
  const std::vector<double> centre(width, 0.5);
  serving::sum_moments(forest, rows.table, centre.data(), 1, sums.data(), squares.data());
  if (serving::BlockScorer::serves(forest, 0, n_trees, n_rows)) {
    const serving::BlockScorer scorer(forest, 0, n_trees);
    const std::size_t n = std::min(n_rows, serving::BlockScorer::block_rows);
    table::RowReader(rows.table, forest.n_categories)
        .read(0, n, [&](const auto* values, std::size_t stride, bool) {
          scorer.add(values, stride, n, 1, sums.data());
        });
  }
  const std::vector<double> targets(8 * forest.shape.n_outputs, 1.0);
  const std::vector<double> q{0.1, 0.9};
  std::vector<double> quantiles(n_rows * forest.shape.n_outputs * q.size());
  if (n_trees > 0) {
    serving::predict_quantiles(forest, rows.table, targets.data(), 8, nullptr, q, 1,
                               quantiles.data());
  }
}

// Children as in packed files, two bits per node: any bits must give valid numbers.
void renumber(forest::ForestState& state) {
  const std::size_t n = state.nodes.size() / 4;
  std::vector<std::uint8_t> bits(n);
  for (std::size_t at = 0; at < n; ++at) bits[at] = state.nodes[4 * at + 2] & 3;
  std::vector<std::int32_t> children(2 * n);
  forest::number_children(bits, children.data());
  for (std::size_t at = 0; at < n; ++at) {
    state.nodes[4 * at + 2] = static_cast<std::uint32_t>(children[2 * at]);
    state.nodes[4 * at + 3] = static_cast<std::uint32_t>(children[2 * at + 1]);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes bytes(data, size);
  forest::Forest forest;
  forest.shape.criterion = static_cast<criterion::CriterionKind>(bytes.byte() % 6);
  forest.shape.n_outputs = bytes.byte() % 4;
  forest.shape.inner_values = bytes.byte() % 2 == 1;
  const std::size_t n_listed = bytes.byte() % 4;
  for (std::size_t i = 0; i < n_listed; ++i) {
    forest.shape.n_classes.push_back(static_cast<std::uint32_t>(bytes.byte()));
  }
  const std::size_t n_features = 1 + bytes.byte() % 4;
  for (std::size_t f = 0; f < n_features; ++f) {
    forest.n_categories.push_back(static_cast<std::int8_t>(bytes.byte()));
  }
  const std::size_t n_rows = bytes.byte() % 2 == 0 ? 5 : 300;
  forest::ForestState state;
  state.visit([&]<class T>(const char*, std::vector<T>& array) { array = bytes.array<T>(); });
  if (bytes.byte() % 2 == 1) renumber(state);
  // The forest either views the arrays, as those of files, or copies them.
  const auto arrays = std::make_shared<const forest::ForestState>(std::move(state));
  const bool owned = bytes.byte() % 2 == 1;
  try {
    forest::from_state(forest::view_of(*arrays), 1, forest, owned ? nullptr : arrays);
    read_everything(forest, n_rows);
  } catch (const common::InputError&) {
  }
  return 0;
}
