// Distances between strings of code points.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace spinney::distance {

using Characters = std::span<const std::uint32_t>;

// Levenshtein distance: the smallest number of insertions, deletions and replacements. A common
// prefix and suffix are removed. If the shorter string then has at most 64 characters, Myers'
// algorithm computes 64 cells of the table at once; longer strings take one cell at a time.
std::int64_t edit_distance(Characters a, Characters b);

// Distances from one string to many others; the positions of its characters are computed once.
class EditPattern {
 public:
  explicit EditPattern(Characters pattern);
  ~EditPattern();
  std::int64_t distance(Characters text) const;

 private:
  class PositionBits;
  Characters pattern_;
  std::unique_ptr<const PositionBits>
      position_bits_;  // null if the pattern is empty or longer than 64
};

// Number of positions with different characters. Positions beyond the end of the shorter string
// count as different.
std::int64_t hamming_distance(Characters a, Characters b);

}  // namespace spinney::distance
