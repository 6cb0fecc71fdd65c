// Children of nodes in pre-order, with leaves numbered from left to right, as in compact trees. Two
// bits per node describe the tree: whether its left child and its right child are leaves.
#pragma once

#include <cstdint>
#include <span>

namespace spinney::forest {

inline constexpr std::uint8_t left_is_leaf = 1;
inline constexpr std::uint8_t right_is_leaf = 2;

// Writes the two children of each node of one tree. If the bits do not describe a tree, check_tree
// rejects the children.
void number_children(std::span<const std::uint8_t> leaf_bits, std::int32_t* children);

}  // namespace spinney::forest
