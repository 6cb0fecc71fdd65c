// Scores of many rows at once. Values become codes of one byte: the number of the model's
// thresholds below the value. A block of rows then goes through a tree together: the splits are
// applied in pre-order, each to all rows of the block.
//
// The position of a row is the number of the leftmost leaf that it can still reach, one byte. A row
// that goes left keeps its position; one that goes right takes the position of the right child. A
// split applies to the rows whose position is its leftmost leaf. One split is thus two comparisons
// and a selection for a vector of rows, without branches.
//
// In a large tree, this costs more than descending. Its first levels are applied to all rows; each
// row then descends by itself from there, by codes again.
//
// Where the instruction set allows, the results of splits are bits instead (block_kernels.h). This
// is faster for most trees, and trees in a batch share the results of equal splits.
//
// A byte distinguishes 255 thresholds of a column. If a model has more, its trees form chunks, and
// the rows are coded again for each chunk.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "spinney/forest/forest.h"
#include "spinney/serving/block_kernels.h"
#include "spinney/table/cut_search.h"

namespace spinney::serving {

class BlockScorer {
 public:
  static constexpr std::size_t max_exits = 256;  // a position in the tree is a byte
  static constexpr std::size_t max_cuts = 255;   // of a column, in a chunk
  static constexpr std::size_t block_rows = BlockKernels::block_rows;

  // Whether it can score these trees, and n_rows are enough to pay for the preparation.
  static bool serves(const forest::Forest& forest, std::size_t first, std::size_t last,
                     std::size_t n_rows);

  // For the trees [first, last). All kernels give the same scores.
  BlockScorer(const forest::Forest& forest, std::size_t first, std::size_t last,
              const BlockKernels& kernels = block_kernels());

  // Whether it is faster than descending each tree row by row.
  bool is_faster() const;

  // out[row][score] += values of the trees, for at most block_rows rows that are `stride` values
  // apart. Categories are codes; missing values are NaN. Tree t adds to score t % n_scores.
  template <class Value>
  void add(const Value* rows, std::size_t stride, std::size_t n, std::size_t n_scores,
           double* out) const;

 private:
  struct CodedColumn {
    std::uint32_t feature;
    std::uint32_t n_categories;  // 0: numeric
    std::int32_t search;         // numeric: index of the chunk's search
  };
  struct Step {           // a node below the first levels; a leaf leads to itself
    std::uint32_t codes;  // where the codes of its lane begin
    std::uint32_t last_left;
    std::uint32_t child[2];  // among the tree's steps
  };
  struct ScoredTree {
    std::size_t begin;  // its splits
    std::size_t end;
    std::size_t values;       // where its values begin: of its leaves, or of its steps
    std::size_t steps;        // where its steps begin
    std::size_t exits;        // where the steps at which the first levels end begin
    std::size_t n_steps;      // steps of every row below the first levels
    std::size_t n_levels;     // first levels by bits; 0: by positions
    std::size_t path_splits;  // where the numbers of its results begin
  };
  struct Batch {        // of trees that share results of splits
    std::size_t begin;  // its trees
    std::size_t end;
    std::size_t n_results;  // with number 0, which is "left" for all rows
    std::vector<std::pair<std::uint32_t, std::vector<CodeComparison>>> of_lane;
  };
  struct Chunk {
    std::size_t begin;  // its trees
    std::size_t end;
    std::vector<CodedColumn> columns;  // by feature
    std::vector<table::CutSearch> searches;
    std::vector<Batch> batches;
  };

  struct Cuts;
  void add_tree(const forest::CompactTree& tree, Cuts& cuts, Chunk& chunk);
  template <class Value>
  static void encode(const Chunk& chunk, const Value* rows, std::size_t stride, std::size_t n,
                     std::uint8_t* codes, std::uint32_t* categories);
  void apply_splits(const CodeSplit* begin, const CodeSplit* end, const std::uint8_t* codes,
                    const std::uint32_t* categories, std::size_t n, std::uint8_t* position) const;
  void find_values(const ScoredTree& tree, const std::uint8_t* codes,
                   const std::uint32_t* categories, const std::uint64_t* results, std::size_t n,
                   std::uint16_t* at) const;

  const BlockKernels& kernels_;
  std::size_t first_ = 0;
  std::size_t max_columns_ = 0;  // of a chunk
  std::size_t max_results_ = 0;  // of a batch
  bool any_categories_ = false;
  std::vector<Chunk> chunks_;
  std::vector<CodeSplit> splits_;
  std::vector<Step> steps_;
  std::vector<std::uint32_t> exits_;
  std::vector<std::uint32_t> path_splits_;
  std::vector<ScoredTree> trees_;
  std::vector<double> values_;
};

}  // namespace spinney::serving
