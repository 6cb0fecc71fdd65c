#include "spinney/common/crc32.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "spinney/common/dispatch.h"
#include "spinney/common/parallel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace spinney::common {

namespace {

// A checksum is a polynomial over {0, 1} of degree below 32; the lowest bit is its highest power.
constexpr std::uint32_t polynomial = 0xedb88320;
constexpr std::uint32_t one = 0x80000000;
constexpr std::size_t block_bytes = std::size_t{1} << 20;

constexpr std::uint32_t times_x(std::uint32_t a) {
  return (a & 1) != 0 ? (a >> 1) ^ polynomial : a >> 1;
}

// Slice k has the remainder of each byte followed by k zero bytes.
constexpr std::size_t n_slices = 8;
using Slices = std::array<std::array<std::uint32_t, 256>, n_slices>;
constexpr Slices make_slices() {
  Slices out{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit) rest = times_x(rest);
    out[0][byte] = rest;
  }
  for (std::size_t k = 1; k < n_slices; ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = out[k - 1][byte];
      out[k][byte] = (before >> 8) ^ out[0][before & 255];
    }
  }
  return out;
}
constexpr Slices slices = make_slices();

// The remainder of `rest` followed by bytes. The caller complements the checksum.
std::uint32_t divide(std::uint32_t rest, const std::uint8_t* bytes, std::size_t n) {
  if constexpr (std::endian::native == std::endian::little) {
    for (; n >= 8; bytes += 8, n -= 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes, 8);
      word ^= rest;
      rest = 0;
      for (std::size_t k = 0; k < 8; ++k) rest ^= slices[7 - k][(word >> (8 * k)) & 255];
    }
  }
  for (; n > 0; ++bytes, --n) rest = (rest >> 8) ^ slices[0][(rest ^ *bytes) & 255];
  return rest;
}

#if defined(__x86_64__)
// Multiplies the two halves of 16 bytes by powers of x: the equivalent bytes at a later position.
__attribute__((target("pclmul,sse2"))) inline __m128i shift_bytes(__m128i bytes, __m128i powers) {
  return _mm_xor_si128(_mm_clmulepi64_si128(bytes, powers, 0x00),
                       _mm_clmulepi64_si128(bytes, powers, 0x11));
}

// Shifts four vectors of 16 bytes by 64 bytes at a time with carry-less products, and adds the
// bytes there. The last bytes are divided one by one.
__attribute__((target("pclmul,sse2"))) std::uint32_t divide_fast(std::uint32_t rest,
                                                                 const std::uint8_t* bytes,
                                                                 std::size_t n) {
  if (n < 128) return divide(rest, bytes, n);
  const auto load = [](const std::uint8_t* from) __attribute__((target("sse2"))) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  };
  const __m128i by_64 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);  // x^(512 - 32), x^(512 + 32)
  const __m128i by_16 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);  // x^(128 - 32), x^(128 + 32)
  __m128i a = _mm_xor_si128(load(bytes), _mm_cvtsi32_si128(static_cast<int>(rest)));
  __m128i b = load(bytes + 16);
  __m128i c = load(bytes + 32);
  __m128i d = load(bytes + 48);
  for (bytes += 64, n -= 64; n >= 64; bytes += 64, n -= 64) {
    a = _mm_xor_si128(shift_bytes(a, by_64), load(bytes));
    b = _mm_xor_si128(shift_bytes(b, by_64), load(bytes + 16));
    c = _mm_xor_si128(shift_bytes(c, by_64), load(bytes + 32));
    d = _mm_xor_si128(shift_bytes(d, by_64), load(bytes + 48));
  }
  a = _mm_xor_si128(shift_bytes(a, by_16), b);
  a = _mm_xor_si128(shift_bytes(a, by_16), c);
  a = _mm_xor_si128(shift_bytes(a, by_16), d);
  std::array<std::uint8_t, 16> last{};
  _mm_storeu_si128(reinterpret_cast<__m128i*>(last.data()), a);
  return divide(divide(0, last.data(), last.size()), bytes, n);
}

std::uint32_t divide_best(std::uint32_t rest, const std::uint8_t* bytes, std::size_t n) {
  return has_carryless_product ? divide_fast(rest, bytes, n) : divide(rest, bytes, n);
}
#else
std::uint32_t divide_best(std::uint32_t rest, const std::uint8_t* bytes, std::size_t n) {
  return divide(rest, bytes, n);
}
#endif

std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t out = 0;
  for (std::uint32_t bit = one; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) out ^= b;
    b = times_x(b);
  }
  return out;
}

// x^(8 n): the factor of a checksum when n bytes follow.
std::uint32_t power_of_bytes(std::size_t n) {
  std::uint32_t out = one;
  std::uint32_t square = one >> 8;
  for (; n > 0; n >>= 1) {
    if ((n & 1) != 0) out = multiply(out, square);
    square = multiply(square, square);
  }
  return out;
}

}  // namespace

std::uint32_t crc32(std::uint32_t sum, std::span<const std::uint8_t> bytes, int n_threads) {
  const std::size_t n_blocks = (bytes.size() + block_bytes - 1) / block_bytes;
  std::vector<std::uint32_t> sums(n_blocks);
  parallel_for(n_blocks, n_threads, [&](std::size_t block, int) {
    const std::size_t first = block * block_bytes;
    const std::size_t n = std::min(block_bytes, bytes.size() - first);
    sums[block] = ~divide_best(~std::uint32_t{0}, bytes.data() + first, n);
  });
  const std::uint32_t whole = power_of_bytes(block_bytes);
  for (std::size_t block = 0; block < n_blocks; ++block) {
    const bool is_last = block + 1 == n_blocks;
    const std::uint32_t power =
        is_last ? power_of_bytes(bytes.size() - block * block_bytes) : whole;
    sum = multiply(power, sum) ^ sums[block];
  }
  return sum;
}

}  // namespace spinney::common
