// Answers to questions as bits, one for each of 512 rows: whether the row's code is above the last
// that goes left. Many trees ask the same, so a question is answered once for all of them.
//
// A tree's levels are filled up to 1, 2, 4 … questions. Which way a row goes on the first level is
// the answer to its one question; on the next, the answer to one of two, chosen by the bit before;
// and so on. Each choice between two answers is one instruction for all rows, and the bits of all
// levels together are the number of the place where a row comes out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace spinney::serving {

struct RowBits {
  static constexpr std::size_t n_rows = 512;
  static constexpr std::size_t n_words = n_rows / 64;
  static constexpr std::size_t max_levels = 12;

  // Whether this processor has the instructions; nothing below may be called on others.
  static bool available();

  struct Question {
    std::uint32_t number;    // of its answer
    std::uint8_t last_left;  // codes up to this go left
  };
  // Answers the questions about a column: bit i of each is whether codes[i] > last_left.
  static void answer(const std::uint8_t* codes, std::span<const Question> questions,
                     std::uint64_t* answers);

  // Where each row comes out: questions are numbers of answers, level by level, 2^n_levels - 1 of
  // them; the answer of number k begins at answers + k * n_words, which is a multiple of 64 bytes.
  static void choose(const std::uint32_t* questions, std::size_t n_levels,
                     const std::uint64_t* answers, std::uint16_t* out);
};

}  // namespace spinney::serving
