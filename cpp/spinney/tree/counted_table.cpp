#include "spinney/tree/counted_table.h"

#include <algorithm>

#include "spinney/table/coded_column.h"

namespace spinney::tree {

using common::Row;

namespace {

void find_common(const std::vector<Row>& rows, std::uint32_t n_classes, CountedColumn& column) {
  std::vector<Row> n_of(column.n_codes());
  for (const Row row : rows) ++n_of[column.cells[row] / n_classes];
  const auto most = std::max_element(n_of.begin(), n_of.end());
  column.has_common = 2 * static_cast<std::size_t>(*most) > rows.size();
  if (!column.has_common) return;
  column.common = static_cast<common::Code>(most - n_of.begin());
  column.others.reserve(rows.size() - *most);
  for (const Row row : rows) {
    if (column.cells[row] / n_classes != column.common) column.others.push_back(row);
  }
}

}  // namespace

bool CountedTable::fits(const table::Table& table, const criterion::Targets& targets) {
  return static_cast<double>(table::largest_code(table) + 1) * targets.n_classes[0] < 4e9;
}

CountedTable::CountedTable(const table::Table& table_, const criterion::Targets& targets,
                           int n_threads)
    : table(table_), n_classes(targets.n_classes[0]), columns(table_.n_features()) {
  for (std::size_t row = 0; row < targets.n_rows; ++row) {
    if (targets.weights[row] != 0.0) rows.push_back(static_cast<Row>(row));
  }
  const table::CodingRows sample{rows.data(), static_cast<Row>(rows.size()), nullptr};
  const table::EntryLayout layout = table::EntryLayout::make(table::largest_code(table), 0);
  table::code_columns(table, sample, layout, false, n_threads,
                      [&](std::size_t f, table::CodedColumn& coded) {
                        CountedColumn& column = columns[f];
                        column.categorical = coded.categorical;
                        column.has_missing = coded.has_missing;
                        column.missing_code = coded.missing_code;
                        column.cells.resize(table.n_rows);
                        column.row_of.resize(static_cast<std::size_t>(coded.missing_code) +
                                             (coded.has_missing ? 1 : 0));
                        for (Row i = coded.n_entries; i-- > 0;) {
                          const common::Code code = layout.code(coded.entries[i]);
                          const Row row = layout.row(coded.entries[i]);
                          column.cells[row] = code * n_classes + targets.labels[row];
                          column.row_of[code] = row;
                        }
                        coded.entries.reset();
                        find_common(rows, n_classes, column);
                      });
}

}  // namespace spinney::tree
