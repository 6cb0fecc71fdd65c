#include "spinney/serving/row_bits.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define SPINNEY_WIDE __attribute__((target("avx512f,avx512bw")))

namespace spinney::serving {

namespace {

constexpr int inlined_levels = 5;  // whose choices are written out, without a loop

// Fewer questions are compared one by one.
constexpr std::size_t enough_for_halves = 16;

SPINNEY_WIDE inline void compare(const std::uint8_t* codes, std::uint8_t last_left,
                                 std::uint64_t* bits) {
  const __m512i last = _mm512_set1_epi8(static_cast<char>(last_left));
#pragma GCC unroll 8
  for (std::size_t w = 0; w < RowBits::n_words; ++w) {
    bits[w] = _mm512_cmpgt_epu8_mask(_mm512_load_si512(codes + 64 * w), last);
  }
}

// Of four bits of the codes: equal[v] and above[v] say whether they make v, or more than v.
struct Half {
  __m512i equal[16];
  __m512i above[16];
};

SPINNEY_WIDE void find_half(const std::uint8_t* codes, int first_bit, Half& half) {
  alignas(64) std::uint64_t words[4][RowBits::n_words];
#pragma GCC unroll 8
  for (std::size_t w = 0; w < RowBits::n_words; ++w) {
    const __m512i of = _mm512_load_si512(codes + 64 * w);
#pragma GCC unroll 4
    for (int bit = 0; bit < 4; ++bit) {
      words[bit][w] =
          _mm512_test_epi8_mask(of, _mm512_set1_epi8(static_cast<char>(1 << (first_bit + bit))));
    }
  }
  __m512i above = _mm512_setzero_si512();
#pragma GCC unroll 16
  for (int value = 15; value >= 0; --value) {
    __m512i equal = _mm512_set1_epi64(-1);
#pragma GCC unroll 4
    for (int bit = 0; bit < 4; ++bit) {
      const __m512i set = _mm512_load_si512(words[bit]);
      equal = (value >> bit & 1) != 0 ? _mm512_and_si512(equal, set)
                                      : _mm512_ternarylogic_epi64(equal, set, set, 0x30);
    }
    half.equal[value] = equal;
    half.above[value] = above;
    above = _mm512_or_si512(above, equal);
  }
}

SPINNEY_WIDE inline __m512i answer_of(const std::uint64_t* answers, std::uint32_t question) {
  return _mm512_load_si512(answers + question * RowBits::n_words);
}

// Bit by bit: right where `bit` is set, else left.
SPINNEY_WIDE inline __m512i either(__m512i bit, __m512i right, __m512i left) {
  return _mm512_ternarylogic_epi64(bit, right, left, 0xCA);
}

// One of 2^n answers; ways are those of the n levels above, the highest first.
template <int n>
SPINNEY_WIDE __attribute__((always_inline)) inline __m512i pick(const std::uint32_t* questions,
                                                                const std::uint64_t* answers,
                                                                const __m512i* ways) {
  if constexpr (n == 0) {
    return answer_of(answers, questions[0]);
  } else {
    const __m512i left = pick<n - 1>(questions, answers, ways + 1);
    const __m512i right = pick<n - 1>(questions + (1 << (n - 1)), answers, ways + 1);
    return either(ways[0], right, left);
  }
}

SPINNEY_WIDE __m512i pick_any(std::size_t n, const std::uint32_t* questions,
                              const std::uint64_t* answers, const __m512i* ways) {
  switch (n) {
    case 0:
      return pick<0>(questions, answers, ways);
    case 1:
      return pick<1>(questions, answers, ways);
    case 2:
      return pick<2>(questions, answers, ways);
    case 3:
      return pick<3>(questions, answers, ways);
    case 4:
      return pick<4>(questions, answers, ways);
    case inlined_levels:
      return pick<inlined_levels>(questions, answers, ways);
    default: {
      const std::size_t half = std::size_t{1} << (n - 1);
      const __m512i left = pick_any(n - 1, questions, answers, ways + 1);
      const __m512i right = pick_any(n - 1, questions + half, answers, ways + 1);
      return either(ways[0], right, left);
    }
  }
}

}  // namespace

bool RowBits::available() {
  static const bool yes = __builtin_cpu_supports("avx512bw") != 0;
  return yes;
}

SPINNEY_WIDE void RowBits::answer(const std::uint8_t* codes, std::span<const Question> questions,
                                  std::uint64_t* answers) {
  if (questions.size() < enough_for_halves) {
    for (const Question& question : questions) {
      compare(codes, question.last_left, answers + question.number * n_words);
    }
    return;
  }
  Half low;
  Half high;
  find_half(codes, 0, low);
  find_half(codes, 4, high);
  for (const Question& question : questions) {
    // Above in the high half; or equal there, and above in the low one.
    const __m512i bits = _mm512_ternarylogic_epi64(high.above[question.last_left >> 4],
                                                   high.equal[question.last_left >> 4],
                                                   low.above[question.last_left & 15], 0xF8);
    _mm512_store_si512(answers + question.number * n_words, bits);
  }
}

SPINNEY_WIDE void RowBits::choose(const std::uint32_t* questions, std::size_t n_levels,
                                  const std::uint64_t* answers, std::uint16_t* out) {
  __m512i ways[max_levels] = {};
  for (std::size_t level = 0; level < n_levels; ++level) {
    ways[level] = pick_any(level, questions, answers, ways);
    questions += std::size_t{1} << level;
  }
  alignas(64) std::uint64_t words[max_levels][n_words];
  for (std::size_t level = 0; level < n_levels; ++level) {
    _mm512_store_si512(words[level], ways[level]);
  }
  for (std::size_t w = 0; w < n_words; ++w) {
    __m512i first = _mm512_setzero_si512();  // of 32 rows
    __m512i second = first;
    for (std::size_t level = 0; level < n_levels; ++level) {
      const std::uint64_t bits = words[level][w];
      const __m512i one = _mm512_set1_epi16(static_cast<short>(1 << (n_levels - 1 - level)));
      first = _mm512_mask_add_epi16(first, static_cast<__mmask32>(bits), first, one);
      second = _mm512_mask_add_epi16(second, static_cast<__mmask32>(bits >> 32), second, one);
    }
    _mm512_storeu_si512(out + 64 * w, first);
    _mm512_storeu_si512(out + 64 * w + 32, second);
  }
}

}  // namespace spinney::serving

#else

namespace spinney::serving {

bool RowBits::available() { return false; }

void RowBits::answer(const std::uint8_t*, std::span<const Question>, std::uint64_t*) {}

void RowBits::choose(const std::uint32_t*, std::size_t, const std::uint64_t*, std::uint16_t*) {}

}  // namespace spinney::serving

#endif
