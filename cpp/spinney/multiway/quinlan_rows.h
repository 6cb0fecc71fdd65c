// The rows that ID3 and C4.5 grow from: every column as codes, and the rows of a node, some of them
// in part.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/criterion/criterion.h"
#include "spinney/multiway/multiway_tree.h"
#include "spinney/table/table.h"

namespace spinney::multiway {

struct QuinlanColumn {
  bool categorical = false;
  bool has_missing = false;
  common::Code missing_code = 0;    // one past the largest code of a value
  std::vector<common::Code> codes;  // of each row
  std::vector<double> values;       // of each code, if they are numbers
  std::size_t n_branch_codes = 0;   // of a category: codes that can have a branch
};

// Rows of a node and how much of each is there.
struct QuinlanItems {
  std::vector<common::Row> rows;
  std::vector<double> weights;

  std::size_t size() const { return rows.size(); }
  void add(common::Row row, double weight) {
    rows.push_back(row);
    weights.push_back(weight);
  }
};

struct QuinlanRows {
  // missing_is_category: a missing category is one more category.
  QuinlanRows(const table::Table& table, const criterion::Targets& targets,
              bool missing_is_category, int n_threads);

  // Whether a code is that of a missing value.
  bool is_missing(std::size_t feature, common::Code code) const {
    return !missing_is_category && code == columns[feature].missing_code;
  }
  // Sets a node's counts, weight and number of rows.
  void count(const QuinlanItems& items, MultiwayNode& node) const;
  // Divides a node's rows by its question, those that miss the value in the branches' shares, which
  // are set.
  std::vector<QuinlanItems> divide(const QuinlanItems& items, MultiwayNode& node) const;

  std::size_t n_classes;
  bool missing_is_category;
  const std::uint32_t* labels;
  std::vector<QuinlanColumn> columns;
  QuinlanItems items;  // all rows that have weight
};

}  // namespace spinney::multiway
