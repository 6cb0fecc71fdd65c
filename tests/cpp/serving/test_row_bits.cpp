#include <vector>

#include "spinney/common/large_array.h"
#include "spinney/common/random.h"
#include "spinney/serving/row_bits.h"
#include "testing.h"

using namespace spinney;
using namespace spinney::serving;
using common::LargeArray;

namespace {

constexpr std::size_t n_codes = RowBits::n_rows;

bool bit(const LargeArray<std::uint64_t>& answers, std::uint32_t number, std::size_t row) {
  return (answers[number * RowBits::n_words + row / 64] >> (row % 64) & 1) != 0;
}

LargeArray<std::uint8_t> draw_codes(common::Stream& stream) {
  LargeArray<std::uint8_t> codes(n_codes);
  for (std::uint8_t& code : codes) code = static_cast<std::uint8_t>(stream.below(256));
  return codes;
}

}  // namespace

TEST(bits_match_comparisons_of_codes) {
  if (!RowBits::available()) return;
  common::Stream stream(3, common::Purpose::rows, 0);
  const LargeArray<std::uint8_t> codes = draw_codes(stream);
  for (const std::size_t n : {std::size_t{1}, std::size_t{9}, std::size_t{256}}) {
    std::vector<RowBits::Question> questions;
    for (std::size_t q = 0; q < n; ++q) {
      const auto last_left = static_cast<std::uint8_t>(n == 256 ? q : stream.below(256));
      questions.push_back({static_cast<std::uint32_t>(n - q), last_left});
    }
    LargeArray<std::uint64_t> answers((n + 1) * RowBits::n_words);
    RowBits::answer(codes.data(), questions, answers.data());
    for (const RowBits::Question& question : questions) {
      for (std::size_t i = 0; i < n_codes; ++i) {
        CHECK(bit(answers, question.number, i) == (codes[i] > question.last_left));
      }
    }
  }
}

// The reference walks down the complete tree row by row.
TEST(rows_reach_the_leaf_of_their_bits) {
  if (!RowBits::available()) return;
  common::Stream stream(4, common::Purpose::rows, 0);
  constexpr std::uint32_t n_answers = 300;
  LargeArray<std::uint64_t> answers(n_answers * RowBits::n_words);
  for (std::uint64_t& word : answers) word = stream.bits();
  for (std::size_t n_levels = 1; n_levels <= RowBits::max_levels; ++n_levels) {
    std::vector<std::uint32_t> questions((std::size_t{1} << n_levels) - 1);
    for (std::uint32_t& question : questions) {
      question = static_cast<std::uint32_t>(stream.below(n_answers));
    }
    std::vector<std::uint16_t> out(n_codes);
    RowBits::choose(questions.data(), n_levels, answers.data(), out.data());
    for (std::size_t i = 0; i < n_codes; ++i) {
      std::size_t position = 0;
      for (std::size_t level = 0; level < n_levels; ++level) {
        const std::uint32_t question = questions[(std::size_t{1} << level) - 1 + position];
        position = 2 * position + static_cast<std::size_t>(bit(answers, question, i));
      }
      CHECK(out[i] == position);
    }
  }
}
