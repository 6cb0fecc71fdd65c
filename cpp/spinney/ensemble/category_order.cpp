#include "spinney/ensemble/category_order.h"

#include <algorithm>
#include <numeric>

#include "spinney/common/random.h"

namespace spinney::ensemble {

using common::Code;

namespace {

constexpr double prior_rows = 5;  // rows with the mean target, added to each category

bool is_ordered(const table::Column& column) {
  return column.kind == table::ColumnKind::categorical && column.n_categories > 2;
}

// One number for each row's target: the class or the value, in a random direction if there are more
// than two classes or several outputs.
std::vector<double> direction_of(const criterion::Targets& targets, common::Stream& stream) {
  std::vector<double> out(targets.n_rows);
  for (std::size_t o = 0; o < targets.n_outputs; ++o) {
    if (targets.labels == nullptr) {
      const double sign = targets.n_outputs == 1 ? 1.0 : 2 * stream.uniform() - 1;
      const double* values = targets.values + o * targets.n_rows;
      for (std::size_t row = 0; row < targets.n_rows; ++row) out[row] += sign * values[row];
      continue;
    }
    const std::uint32_t* labels = targets.labels + o * targets.n_rows;
    std::vector<double> of_class(targets.n_classes[o]);
    for (double& value : of_class) value = stream.uniform();
    if (targets.n_outputs == 1 && of_class.size() == 2) of_class = {0.0, 1.0};
    for (std::size_t row = 0; row < targets.n_rows; ++row) out[row] += of_class[labels[row]];
  }
  return out;
}

}  // namespace

bool has_ordered_categories(const table::Table& table) {
  return std::any_of(table.columns.begin(), table.columns.end(), is_ordered);
}

std::vector<std::vector<Code>> order_categories(const table::Table& table,
                                                const criterion::Targets& targets,
                                                const std::uint32_t* counts,
                                                std::uint64_t tree_seed) {
  std::vector<std::vector<Code>> ranks(table.n_features());
  common::Stream stream(tree_seed, common::Purpose::orders, 0);
  std::vector<double> direction;
  std::vector<common::Row> rows;
  for (std::size_t f = 0; f < table.n_features(); ++f) {
    const table::Column& column = table.columns[f];
    if (!is_ordered(column)) continue;
    if (direction.empty()) {
      direction = direction_of(targets, stream);
      for (std::size_t row = 0; row < targets.n_rows; ++row) {
        if (counts != nullptr && counts[row] > 0) continue;
        if (determines_order(tree_seed, static_cast<common::Row>(row))) {
          rows.push_back(static_cast<common::Row>(row));
        }
      }
    }
    const auto n_codes = static_cast<std::size_t>(column.n_categories) + 1;
    std::vector<double> sums(n_codes);
    std::vector<double> weights(n_codes);
    double total = 0;
    double weight = 0;
    for (const common::Row row : rows) {
      const std::int32_t category = column.category(row);
      const auto code = static_cast<std::size_t>(category < 0 ? column.n_categories : category);
      const double w = targets.weights != nullptr ? targets.weights[row] : 1.0;
      sums[code] += w * direction[row];
      weights[code] += w;
      total += w * direction[row];
      weight += w;
    }
    const double mean = weight > 0 ? total / weight : 0.0;
    std::vector<double> keys(n_codes);
    std::vector<std::uint64_t> ties(n_codes);
    for (std::size_t code = 0; code < n_codes; ++code) {
      keys[code] = (sums[code] + prior_rows * mean) / (weights[code] + prior_rows);
      ties[code] = stream.bits();  // categories without rows: in random order
    }
    std::vector<Code> order(n_codes);
    std::iota(order.begin(), order.end(), Code{0});
    std::sort(order.begin(), order.end(), [&](Code a, Code b) {
      return keys[a] < keys[b] || (keys[a] == keys[b] && ties[a] < ties[b]);
    });
    ranks[f].resize(n_codes);
    for (std::size_t rank = 0; rank < n_codes; ++rank) {
      ranks[f][order[rank]] = static_cast<Code>(rank);
    }
  }
  return ranks;
}

}  // namespace spinney::ensemble
