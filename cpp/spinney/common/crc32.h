// The checksum of zlib and PNG (CRC-32), computed by several threads: model files are large, and
// checking one must not take longer than reading it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace spinney::common {

// Extends a checksum: returns that of earlier bytes, whose checksum is `sum` (0 for none), followed
// by `bytes`.
std::uint32_t crc32(std::uint32_t sum, std::span<const std::uint8_t> bytes, int n_threads);

}  // namespace spinney::common
