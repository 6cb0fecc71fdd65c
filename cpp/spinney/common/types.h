// Integer types of the core, with the reasons for their widths.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spinney::common {

// A row of the table. 32 bits halve the memory traffic of the loops that memory bandwidth limits;
// exact presorting is not meant for more than 2^32 rows.
using Row = std::uint32_t;

// The rank of a value among a column's distinct values, or the code of a category.
using Code = std::uint32_t;

// An index of a node in a tree's parallel arrays; -1 means "no node".
using NodeIndex = std::int32_t;

}  // namespace spinney::common
