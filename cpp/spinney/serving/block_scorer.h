// Predictions of many rows at once. Values become codes, one byte each: the number of the model's
// thresholds below them. A block of rows then walks through a tree together: the questions are
// asked in pre-order, each of the whole block.
//
// A row's place is the number of the leftmost leaf that it can still reach, one byte. Whoever goes
// left keeps his place, whoever goes right gets that of the right child, and the rows that a
// question is for are those whose place is its leftmost leaf. So a question is two comparisons and
// a selection for 32 or 64 rows at a time, without branches.
//
// Asking every question of a large tree costs more than going down. Its first levels are asked of
// all rows; each row then goes down by itself from where it left them, by codes again.
//
// Where the processor has instructions for it, answers are bits instead (row_bits.h), which takes
// less time for most trees; batches of trees share the answers to the questions that they ask.
//
// A byte tells 255 thresholds of a column apart. Where a model has more, its trees form chunks, one
// after another, and the rows are coded anew for each.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "spinney/forest/forest.h"
#include "spinney/serving/row_bits.h"
#include "spinney/table/cut_search.h"

namespace spinney::serving {

class BlockScorer {
 public:
  static constexpr std::size_t max_exits = 256;  // a place in the tree is a byte
  static constexpr std::size_t max_cuts = 255;   // of a column, in a chunk
  static constexpr std::size_t block_rows = 512;

  // Whether the trees are of a kind that it can read, and so many rows worth the preparation.
  static bool serves(const forest::Forest& forest, std::size_t first, std::size_t last,
                     std::size_t n_rows);

  // Of the trees [first, last). Both ways to ask give the same answers.
  BlockScorer(const forest::Forest& forest, std::size_t first, std::size_t last,
              bool may_use_bits = RowBits::available());

  // Whether coding the rows costs less than the codes save.
  bool pays() const;

  // out[row][score] += the trees' values; rows are `stride` values apart, codes for categories and
  // NaN for what is missing, at most block_rows of them. Tree t adds to score t % n_scores.
  template <class Value>
  void add(const Value* rows, std::size_t stride, std::size_t n, std::size_t n_scores,
           double* out) const;

 private:
  struct Asked {  // a column that questions are about
    std::uint32_t feature;
    std::uint32_t n_categories;  // 0: numbers
    std::int32_t search;         // of a number: which of the chunk's searches
  };
  struct Question {
    std::uint32_t lane;               // its codes: those of a column, for where missing ones go
    std::uint8_t place;               // the leftmost leaf below it
    std::uint8_t right;               // the place of its right child
    std::uint8_t last_left;           // codes up to this go left
    const std::uint32_t* categories;  // that go left; null for a number
  };
  struct Step {           // a node below the first levels; a leaf leads to itself
    std::uint32_t codes;  // where those of its lane begin
    std::uint32_t last_left;
    std::uint32_t child[2];  // among the tree's steps
  };
  struct Scored {
    std::size_t begin;  // its questions
    std::size_t end;
    std::size_t values;    // where its values begin: of its leaves, or of its steps
    std::size_t steps;     // where its steps begin
    std::size_t exits;     // where the steps at which the first levels end begin
    std::size_t n_steps;   // that every row takes below the first levels
    std::size_t n_levels;  // asked by bits; 0: by questions, or none
    std::size_t asked;     // where the numbers of its answers begin
  };
  struct Batch {        // of trees that share answers
    std::size_t begin;  // its trees
    std::size_t end;
    std::size_t n_answers;  // with number 0, which is "left" for all rows
    std::vector<std::pair<std::uint32_t, std::vector<RowBits::Question>>> of_lane;
  };
  struct Chunk {
    std::size_t begin;  // its trees
    std::size_t end;
    std::vector<Asked> columns;  // by feature
    std::vector<table::CutSearch> searches;
    std::vector<Batch> batches;
  };

  struct Cuts;
  void add_tree(const forest::CompactTree& tree, Cuts& cuts, Chunk& chunk);
  template <class Value>
  static void encode(const Chunk& chunk, const Value* rows, std::size_t stride, std::size_t n,
                     std::uint8_t* codes, std::uint32_t* categories);
  static void ask(const Question* begin, const Question* end, const std::uint8_t* codes,
                  std::size_t n, std::uint8_t* at);
  static void ask_in_registers(const Question* begin, const Question* end,
                               const std::uint8_t* codes, std::size_t n, std::uint8_t* at);
  static void walk(const Question* begin, const Question* end, const std::uint8_t* codes,
                   const std::uint32_t* categories, std::size_t n, std::uint8_t* at);
  void find_values(const Scored& tree, const std::uint8_t* codes, const std::uint32_t* categories,
                   const std::uint64_t* answers, std::size_t n, std::uint16_t* at) const;

  std::size_t first_ = 0;
  std::size_t most_columns_ = 0;  // of a chunk
  std::size_t most_answers_ = 0;  // of a batch
  bool may_use_bits_ = false;
  bool any_categories_ = false;
  std::vector<Chunk> chunks_;
  std::vector<Question> questions_;
  std::vector<Step> steps_;
  std::vector<std::uint32_t> exits_;
  std::vector<std::uint32_t> asked_;
  std::vector<Scored> trees_;
  std::vector<double> values_;
};

}  // namespace spinney::serving
