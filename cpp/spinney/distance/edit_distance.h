// Distances between strings of code points.
#pragma once

#include <cstdint>
#include <span>

namespace spinney {

using Characters = std::span<const std::uint32_t>;

// Levenshtein's: the fewest characters to insert, delete or replace. Myers' algorithm, 64 cells of
// a column in one word, where the shorter string (without what both begin and end with) has at most
// 64 characters; else cell by cell.
std::int64_t edit_distance(Characters a, Characters b);

// Positions with different characters; those that only the longer string has count as different.
std::int64_t hamming_distance(Characters a, Characters b);

}  // namespace spinney
