// The checksum of zlib and PNG (CRC-32), over as many threads as there are: files are as large as
// forests, and checking them must not take longer than reading them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace spinney::common {

// The checksum of what `sum` is the checksum of (0: nothing) and then `bytes`.
std::uint32_t crc32(std::uint32_t sum, std::span<const std::uint8_t> bytes, int n_threads);

}  // namespace spinney::common
