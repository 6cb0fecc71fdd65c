// Predictions of small trees for many rows at once. Values become codes, one byte each: the number
// of the model's thresholds below them. A block of rows then walks through a tree together: the
// questions are asked in pre-order, each of the whole block, and the rows that are at a question
// move on to one of its children. A row's place is one byte, so a vector instruction moves 32 or 64
// rows, and there are no branches.
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/ensemble/forest.h"
#include "spinney/table/cut_search.h"

namespace spinney {

class BlockScorer {
 public:
  static constexpr std::size_t max_leaves = 128;  // a place in the tree is a byte
  static constexpr std::size_t block_rows = 256;

  // Whether it is worth the preparation for so many rows, and the trees are small enough.
  static bool serves(const Forest& forest, std::size_t first, std::size_t last, std::size_t n_rows);

  // Of the trees [first, last).
  BlockScorer(const Forest& forest, std::size_t first, std::size_t last);

  // out[row][score] += the trees' values; rows are `stride` values apart, codes for categories and
  // NaN for what is missing, at most block_rows of them. Tree t adds to score t % n_scores.
  template <class Value>
  void add(const Value* rows, std::size_t stride, std::size_t n, std::size_t n_scores,
           double* out) const;

 private:
  struct Asked {  // a column that questions are about
    std::uint32_t feature;
    std::uint32_t n_categories;  // 0: numbers
    std::int32_t search;         // of a number: which of searches_
  };
  struct Question {
    std::uint32_t column;             // among those that are asked about
    std::uint8_t place;               // its number in pre-order, leaves counted too
    std::uint8_t to_right;            // places from it to its right child; to the left one it is 1
    std::uint8_t shift;               // 0: what is missing (code 0) goes left, 1: right
    std::uint8_t last_left;           // code - shift up to this goes left
    const std::uint32_t* categories;  // that go left; null for a number
  };
  struct Scored {
    std::size_t begin;  // its questions
    std::size_t end;
    std::size_t values;  // where its values begin
  };

  static void walk(const Question* begin, const Question* end, const std::uint8_t* codes,
                   const std::uint32_t* categories, std::uint8_t* at);
  template <class Value>
  void encode(const Value* rows, std::size_t stride, std::size_t n, std::uint8_t* codes,
              std::uint32_t* categories) const;

  std::size_t first_ = 0;
  std::vector<Asked> columns_;  // by feature
  std::vector<CutSearch> searches_;
  std::vector<Question> questions_;
  std::vector<Scored> trees_;
  std::vector<double> values_;  // of each place of each tree, zero for questions
};

}  // namespace spinney
