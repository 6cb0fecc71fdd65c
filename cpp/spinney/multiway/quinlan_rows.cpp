#include "spinney/multiway/quinlan_rows.h"

#include <algorithm>

#include "spinney/table/coded_column.h"

namespace spinney::multiway {

QuinlanRows::QuinlanRows(const table::Table& table, const criterion::Targets& targets,
                         bool missing_is_category_, int n_threads)
    : n_classes(targets.n_classes[0]),
      missing_is_category(missing_is_category_),
      labels(targets.labels),
      columns(table.n_features()) {
  for (std::size_t row = 0; row < targets.n_rows; ++row) {
    const double weight = targets.weights == nullptr ? 1.0 : targets.weights[row];
    if (weight > 0) items.add(static_cast<common::Row>(row), weight);
  }
  const table::EntryLayout layout = table::EntryLayout::make(table::largest_code(table), 0);
  const table::CodingRows sample{items.rows.data(), static_cast<common::Row>(items.size()),
                                 nullptr};
  table::code_columns(
      table, sample, layout, false, n_threads, [&](std::size_t f, table::CodedColumn& coded) {
        QuinlanColumn& column = columns[f];
        column.categorical = coded.categorical;
        column.has_missing = coded.has_missing;
        column.missing_code = coded.missing_code;
        column.codes.resize(table.n_rows);
        if (coded.categorical) {
          column.n_branch_codes =
              coded.missing_code + (missing_is_category && coded.has_missing ? 1U : 0U);
        } else {
          column.values.resize(coded.missing_code);
        }
        for (common::Row i = 0; i < coded.n_entries; ++i) {
          const common::Code code = layout.code(coded.entries[i]);
          const common::Row row = layout.row(coded.entries[i]);
          column.codes[row] = code;
          if (!coded.categorical && !coded.is_missing(code)) {
            column.values[code] = table.columns[f].value(row);
          }
        }
        coded.entries.reset();
      });
}

void QuinlanRows::count(const QuinlanItems& of_node, MultiwayNode& node) const {
  node.counts.assign(n_classes, 0.0);
  node.weight = 0;
  for (std::size_t i = 0; i < of_node.size(); ++i) {
    node.counts[labels[of_node.rows[i]]] += of_node.weights[i];
    node.weight += of_node.weights[i];
  }
  node.n_rows = static_cast<std::int64_t>(of_node.size());
}

std::vector<QuinlanItems> QuinlanRows::partition(const QuinlanItems& of_node,
                                                 MultiwayNode& node) const {
  const auto feature = static_cast<std::size_t>(node.feature);
  const QuinlanColumn& column = columns[feature];
  std::vector<QuinlanItems> branches(node.children.size());
  QuinlanItems missing;
  common::Code left_codes = 0;  // numeric: number of codes that go left
  if (!column.categorical) {
    left_codes = static_cast<common::Code>(
        std::upper_bound(column.values.begin(), column.values.end(), node.threshold) -
        column.values.begin());
  }
  node.shares.assign(branches.size(), 0.0);
  double known = 0;
  for (std::size_t i = 0; i < of_node.size(); ++i) {
    const common::Row row = of_node.rows[i];
    const double weight = of_node.weights[i];
    const common::Code code = column.codes[row];
    std::int32_t branch = -1;
    if (!is_missing(feature, code)) {
      branch = column.categorical ? node.branch_of[code] : (code < left_codes ? 0 : 1);
    }
    if (branch < 0) {
      missing.add(row, weight);
      continue;
    }
    branches[static_cast<std::size_t>(branch)].add(row, weight);
    node.shares[static_cast<std::size_t>(branch)] += weight;
    known += weight;
  }
  for (double& share : node.shares) share = known > 0 ? share / known : 0.0;
  for (std::size_t b = 0; b < branches.size(); ++b) {
    if (node.shares[b] == 0) continue;
    for (std::size_t i = 0; i < missing.size(); ++i) {
      branches[b].add(missing.rows[i], missing.weights[i] * node.shares[b]);
    }
  }
  return branches;
}

}  // namespace spinney::multiway
