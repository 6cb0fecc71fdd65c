// A forest as a few flat arrays, for files and pickles.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "spinney/forest/forest.h"

namespace spinney::forest {

// The trees' arrays one after another; sizes has, for each tree, the length of each of them.
template <template <class> class List>
struct ForestArrays {
  List<std::uint64_t> sizes;
  List<std::uint32_t> nodes;  // four words a node, as they lie in memory
  List<double> thresholds;
  List<std::uint32_t> leaf_rows;
  List<float> leaf_weight;
  List<double> leaf_weight_exact;
  List<std::uint32_t> leaf_class;
  List<float> mixed_counts;
  List<double> values;
  List<double> leaf_impurity;
  List<double> inner_value;
  List<double> inner_impurity;
  List<std::uint32_t> category_bits;
  List<std::uint32_t> members;
  List<std::uint32_t> member_start;

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
  std::size_t nbytes() {
    std::size_t total = 0;
    visit([&](const char*, const auto& array) { total += array.size() * sizeof(array[0]); });
    return total;
  }
};

template <class T>
using OwnList = std::vector<T>;
template <class T>
using ViewedList = std::span<const T>;

using ForestState = ForestArrays<OwnList>;
using ForestView = ForestArrays<ViewedList>;  // of memory that somebody else holds

ForestState to_state(const Forest& forest);
ForestView view_of(const ForestState& state);
// Fills forest.trees; the forest's shape is known. Throws InputError if anything does not fit. With
// an owner, which keeps the memory of the arrays as it is now, the trees view it; else they copy
// it.
void from_state(const ForestView& state, int n_threads, Forest& forest,
                const std::shared_ptr<const void>& owner = nullptr);

}  // namespace spinney::forest
