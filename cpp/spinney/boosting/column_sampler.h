// Columns that a node may split on: random fractions per tree, level and node, and the sets of
// interaction_cst.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/boosting/boost_options.h"

namespace spinney::boosting {

class ColumnSampler {
 public:
  ColumnSampler(const TreeRules& rules, std::size_t n_features)
      : rules_(rules), n_features_(n_features) {}

  // Draws the columns of a tree.
  void start_tree(std::uint64_t number);

  // Flags of the columns allowed in a node; empty: all. name: of the node; path: columns of the
  // splits above it.
  std::vector<std::uint8_t> allowed(std::size_t depth, std::uint64_t name,
                                    const std::vector<std::uint32_t>& path) const;

 private:
  void draw(std::vector<std::uint8_t>& columns, double fraction, std::uint64_t index) const;
  void keep_interactions(std::vector<std::uint8_t>& columns,
                         const std::vector<std::uint32_t>& path) const;

  const TreeRules& rules_;
  std::size_t n_features_;
  std::uint64_t number_ = 0;
  std::vector<std::uint8_t> of_tree_;
};

}  // namespace spinney::boosting
