// Training data of ID3 and C4.5: columns as codes, and the weighted rows of a node.
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
  common::Code missing_code = 0;    // the largest code of a value, plus 1
  std::vector<common::Code> codes;  // by row
  std::vector<double> values;       // by code, if numeric
  std::size_t n_branch_codes = 0;   // categorical: codes that can have a branch
};

// The rows of a node and their weights there.
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
  // missing_is_category: a missing value is a category of its own.
  QuinlanRows(const table::Table& table, const criterion::Targets& targets,
              bool missing_is_category, int n_threads);

  // Whether a code means a missing value.
  bool is_missing(std::size_t feature, common::Code code) const {
    return !missing_is_category && code == columns[feature].missing_code;
  }
  // Computes a node's class weights, weight and number of rows.
  void count(const QuinlanItems& items, MultiwayNode& node) const;
  // Partitions a node's rows by its split and sets node.shares. A row with a missing value goes to
  // all branches, weighted by their shares.
  std::vector<QuinlanItems> partition(const QuinlanItems& items, MultiwayNode& node) const;

  std::size_t n_classes;
  bool missing_is_category;
  const std::uint32_t* labels;
  std::vector<QuinlanColumn> columns;
  QuinlanItems items;  // all rows of positive weight
};

}  // namespace spinney::multiway
