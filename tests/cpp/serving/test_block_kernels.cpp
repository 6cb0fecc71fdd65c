#include "spinney/serving/block_kernels.h"

#include <vector>

#include "spinney/common/large_array.h"
#include "spinney/common/random.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::serving;
using common::LargeArray;

namespace {

constexpr std::size_t n_codes = BlockKernels::block_rows;

bool bit(const LargeArray<std::uint64_t>& results, std::uint32_t number, std::size_t row) {
  return (results[number * BlockKernels::n_words + row / 64] >> (row % 64) & 1) != 0;
}

LargeArray<std::uint8_t> draw_codes(common::Stream& stream, std::size_t n_lanes) {
  LargeArray<std::uint8_t> codes(n_lanes * n_codes);
  for (std::uint8_t& code : codes) code = static_cast<std::uint8_t>(stream.below(256));
  return codes;
}

}  // namespace

TEST(the_last_supported_block_kernels_are_used) {
  CHECK(!supported_block_kernels().empty());
  CHECK(&block_kernels() == supported_block_kernels().back());
  CHECK(supported_block_kernels().front() == &baseline_block_kernels);
}

TEST(positions_follow_the_splits) {
  common::Stream stream(5, common::Purpose::rows, 0);
  constexpr std::size_t n_lanes = 3;
  const LargeArray<std::uint8_t> codes = draw_codes(stream, n_lanes);
  std::vector<CodeSplit> splits;
  for (std::size_t s = 0; s < 40; ++s) {
    const auto draw = [&](std::uint64_t n) { return static_cast<std::uint8_t>(stream.below(n)); };
    // Few positions, so that most splits move rows.
    splits.push_back(
        {draw(n_lanes), draw(4), static_cast<std::uint8_t>(draw(4) * 85), draw(256), nullptr});
    if (s % 8 == 0) splits.back().position = 0;
    if (s % 5 == 0) splits.back().last_left = s % 2 == 0 ? 0 : 255;
  }
  for (const BlockKernels* const kernels : supported_block_kernels()) {
    for (const std::size_t n : {BlockKernels::apply_rows, n_codes}) {
      for (const std::size_t n_splits : {std::size_t{0}, std::size_t{1}, splits.size()}) {
        LargeArray<std::uint8_t> position(n_codes);
        for (std::size_t i = 0; i < n_codes; ++i) position[i] = static_cast<std::uint8_t>(i % 3);
        std::vector<std::uint8_t> expected(position.begin(), position.end());
        for (std::size_t s = 0; s < n_splits; ++s) {
          for (std::size_t i = 0; i < n; ++i) {
            const bool right = codes[splits[s].lane * n_codes + i] > splits[s].last_left;
            if (expected[i] == splits[s].position && right) expected[i] = splits[s].right;
          }
        }
        kernels->apply(splits.data(), splits.data() + n_splits, codes.data(), n, position.data());
        CHECK(std::vector<std::uint8_t>(position.begin(), position.end()) == expected);
      }
    }
  }
}

TEST(bits_match_comparisons_of_codes) {
  common::Stream stream(3, common::Purpose::rows, 0);
  const LargeArray<std::uint8_t> codes = draw_codes(stream, 1);
  for (const BlockKernels* const kernels : supported_block_kernels()) {
    if (kernels->compare == nullptr) continue;
    for (const std::size_t n : {std::size_t{1}, std::size_t{9}, std::size_t{256}}) {
      std::vector<CodeComparison> comparisons;
      for (std::size_t k = 0; k < n; ++k) {
        const auto last_left = static_cast<std::uint8_t>(n == 256 ? k : stream.below(256));
        comparisons.push_back({static_cast<std::uint32_t>(n - k), last_left});
      }
      LargeArray<std::uint64_t> results((n + 1) * BlockKernels::n_words);
      kernels->compare(codes.data(), comparisons, results.data());
      for (const CodeComparison& one : comparisons) {
        for (std::size_t i = 0; i < n_codes; ++i) {
          CHECK(bit(results, one.number, i) == (codes[i] > one.last_left));
        }
      }
    }
  }
}

// The reference walks down the complete tree row by row.
TEST(rows_reach_the_leaf_of_their_bits) {
  common::Stream stream(4, common::Purpose::rows, 0);
  constexpr std::uint32_t n_results = 300;
  LargeArray<std::uint64_t> results(n_results * BlockKernels::n_words);
  for (std::uint64_t& word : results) word = stream.bits();
  for (const BlockKernels* const kernels : supported_block_kernels()) {
    if (kernels->find_positions == nullptr) continue;
    for (std::size_t n_levels = 1; n_levels <= BlockKernels::max_levels; ++n_levels) {
      std::vector<std::uint32_t> splits((std::size_t{1} << n_levels) - 1);
      for (std::uint32_t& split : splits) {
        split = static_cast<std::uint32_t>(stream.below(n_results));
      }
      std::vector<std::uint16_t> out(n_codes);
      kernels->find_positions(splits.data(), n_levels, results.data(), out.data());
      for (std::size_t i = 0; i < n_codes; ++i) {
        std::size_t position = 0;
        for (std::size_t level = 0; level < n_levels; ++level) {
          const std::uint32_t split = splits[(std::size_t{1} << level) - 1 + position];
          position = 2 * position + static_cast<std::size_t>(bit(results, split, i));
        }
        CHECK(out[i] == position);
      }
    }
  }
}
