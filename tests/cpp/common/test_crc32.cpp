#include "spinney/common/crc32.h"

#include <cstdint>
#include <span>
#include <vector>

#include "testing.h"

using namespace spinney;
using namespace spinney::common;

TEST(crc32_check_value) {
  const std::vector<std::uint8_t> digits{'1', '2', '3', '4', '5', '6', '7', '8', '9'};
  CHECK(crc32(0, digits, 1) == 0xcbf43926);
  CHECK(crc32(0, {}, 1) == 0);
}

TEST(crc32_of_chunks_equals_crc32_of_all_bytes) {
  std::vector<std::uint8_t> bytes((std::size_t{2} << 20) + 333);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(i * i / 7 + i);
  }
  const std::uint32_t whole = crc32(0, bytes, 1);
  CHECK(crc32(0, bytes, 3) == whole);
  std::uint32_t bit_by_bit = 0xffffffff;
  for (const std::uint8_t byte : bytes) {
    bit_by_bit ^= byte;
    for (int bit = 0; bit < 8; ++bit) {
      bit_by_bit = (bit_by_bit >> 1) ^ ((bit_by_bit & 1) != 0 ? 0xedb88320U : 0U);
    }
  }
  CHECK(~bit_by_bit == whole);
  const std::span<const std::uint8_t> all(bytes);
  for (const std::size_t cut : {std::size_t{1}, std::size_t{130}, std::size_t{1} << 20}) {
    CHECK(crc32(crc32(0, all.first(cut), 2), all.subspan(cut), 2) == whole);
  }
}
