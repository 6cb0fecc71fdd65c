// Children of nodes that are in pre-order, leaves numbered from left to right, as compact trees
// have them: two bits a node say all, whether its left and its right child are leaves.
#pragma once

#include <cstdint>
#include <span>

namespace spinney::forest {

inline constexpr std::uint8_t left_is_leaf = 1;
inline constexpr std::uint8_t right_is_leaf = 2;

// Fills the two children of each node of one tree. Bits that make no tree give children that do not
// fit, which check_tree refuses.
void number_children(std::span<const std::uint8_t> leaf_bits, std::int32_t* children);

}  // namespace spinney::forest
