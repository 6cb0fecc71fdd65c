// Every width the core relies on is chosen here, with the reason.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spinney::common {

// A row of the table. 32 bits: half the bytes of a 64-bit index in the loops that are bound by
// memory; four thousand million rows are beyond what exact presorting is for.
using Row = std::uint32_t;

// The rank of a value among a column's distinct values, or the code of a category.
using Code = std::uint32_t;

// A position in a tree's parallel arrays; -1 says "no node".
using NodeIndex = std::int32_t;

}  // namespace spinney::common
