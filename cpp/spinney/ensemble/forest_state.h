// A forest as a few flat arrays, for files and pickles.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/ensemble/forest.h"

namespace spinney {

// The trees' arrays one after another; sizes has, for each tree, the length of each of them.
struct ForestState {
  std::vector<std::uint64_t> sizes;
  std::vector<std::uint32_t> nodes;  // four words a node, as they lie in memory
  std::vector<double> thresholds;
  std::vector<std::uint32_t> leaf_rows;
  std::vector<float> leaf_weight;
  std::vector<double> leaf_weight_exact;
  std::vector<std::uint32_t> leaf_class;
  std::vector<float> mixed_counts;
  std::vector<double> values;
  std::vector<double> leaf_impurity;
  std::vector<double> inner_value;
  std::vector<double> inner_impurity;
  std::vector<std::uint32_t> category_bits;
  std::vector<std::uint32_t> members;
  std::vector<std::uint32_t> member_start;

  template <class Visit>
  void visit(const Visit& body) {
    body("sizes", sizes);
    visit_arrays(body);
  }
  template <class Visit>
  void visit_arrays(const Visit& body) {
    body("nodes", nodes);
    body("thresholds", thresholds);
    body("leaf_rows", leaf_rows);
    body("leaf_weight", leaf_weight);
    body("leaf_weight_exact", leaf_weight_exact);
    body("leaf_class", leaf_class);
    body("mixed_counts", mixed_counts);
    body("values", values);
    body("leaf_impurity", leaf_impurity);
    body("inner_value", inner_value);
    body("inner_impurity", inner_impurity);
    body("category_bits", category_bits);
    body("members", members);
    body("member_start", member_start);
  }
  std::size_t nbytes();
};

ForestState to_state(const Forest& forest);
// Fills forest.trees; the forest's shape is known. Throws InputError if anything does not fit.
void from_state(ForestState& state, Forest& forest);

}  // namespace spinney
