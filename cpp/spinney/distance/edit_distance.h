// Distances between strings of code points.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace spinney::distance {

using Characters = std::span<const std::uint32_t>;

// Levenshtein's: the fewest characters to insert, delete or replace. Myers' algorithm, 64 cells of
// a column in one word, where the shorter string (without what both begin and end with) has at most
// 64 characters; else cell by cell.
std::int64_t edit_distance(Characters a, Characters b);

// Distances of one string to many others: where its characters stand is found out once.
class EditPattern {
 public:
  explicit EditPattern(Characters pattern);
  ~EditPattern();
  std::int64_t distance(Characters text) const;

 private:
  class Places;
  Characters pattern_;
  std::unique_ptr<const Places> places_;  // none if the pattern is longer than a word
};

// Positions with different characters; those that only the longer string has count as different.
std::int64_t hamming_distance(Characters a, Characters b);

}  // namespace spinney::distance
