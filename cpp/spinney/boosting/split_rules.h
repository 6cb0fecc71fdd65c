// Limits and penalties of splits. Fields have the names of the Python parameters.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace spinney::boosting {

struct SplitRules {
  double l2_regularization = 0;  // λ
  double l1_regularization = 0;
  double min_split_gain = 0;         // γ
  double min_hessian_leaf = 0;       // smallest sum of second derivatives of a leaf
  std::size_t min_samples_leaf = 1;  // smallest number of rows of a leaf
  double category_l2 = 10;           // added to λ in splits on categories
  double category_smooth = 10;       // rows with gradient 0 added to each category for ordering
  std::uint32_t max_category_group = 32;   // largest number of categories on the smaller side
  std::vector<std::int8_t> monotonic_cst;  // sign of each column, or empty
  // First and last + 1 of the cuts of each column that leave min_samples_leaf rows of the table on
  // both sides, or empty. No node needs to look at other cuts.
  std::vector<std::array<std::uint32_t, 2>> cuts;
};

}  // namespace spinney::boosting
