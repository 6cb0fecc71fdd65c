// Predictions of small trees for many rows at once: each row starts with a bit for every leaf, and
// each question crosses out the leaves on the side that the row does not go to. The lowest bit left
// is the row's leaf. All questions are asked, but of many rows at once and without branches.
//
// (QuickScorer, Lucchese et al. 2015, with rows instead of trees side by side.)
#pragma once

#include <cstdint>
#include <vector>

#include "spinney/ensemble/forest.h"

namespace spinney {

class BitScorer {
 public:
  static constexpr std::size_t max_leaves = 64;
  static constexpr std::size_t block_rows = 256;

  // Of the trees [first, last), each with at most max_leaves leaves.
  BitScorer(const Forest& forest, std::size_t first, std::size_t last);

  static bool serves(const Forest& forest, std::size_t first, std::size_t last);

  // out[row][score] += the trees' values; rows are `stride` values apart, codes for categories and
  // NaN for what is missing, at most block_rows of them. Tree t adds to score t % n_scores.
  template <class Value>
  void add(const Value* rows, std::size_t stride, std::size_t n, std::size_t n_scores,
           double* out) const;

 private:
  struct Question {
    std::uint32_t column;  // among those that are asked about
    bool missing_left;
    const std::uint32_t* categories;  // that go left; null for a number
    double threshold;
    std::uint64_t if_right;  // leaves that are left for rows that go right
  };
  struct Scored {
    std::size_t begin;       // its questions
    std::size_t categories;  // where those about categories begin
    std::size_t end;
    const double* values;
  };

  // Questions about numbers; values: [column][block_rows]. Of float32 values, and up to 32 leaves,
  // twice as many rows go into a vector.
  static void cross_out(const Question* begin, const Question* end, const double* values,
                        std::size_t n, std::uint64_t* leaves);
  static void cross_out(const Question* begin, const Question* end, const float* values,
                        std::size_t n, std::uint32_t* leaves);
  template <class Number, class Bits, class Value>
  void add_as(const Value* rows, std::size_t stride, std::size_t n, std::size_t n_scores,
              double* out) const;

  bool narrow_ = true;  // thresholds are float32, trees have at most 32 leaves

  std::size_t first_ = 0;
  std::vector<std::uint32_t> columns_;  // asked about, ascending
  std::vector<Question> questions_;
  std::vector<Scored> trees_;
};

}  // namespace spinney
