// Memory of the operating system: aligned blocks, large pages, return of what is free.
#pragma once

#include <cstddef>

namespace spinney::common {

// A block that starts at a multiple of 64 bytes, not initialised. Large blocks use large pages
// where the system has them. Throws std::bad_alloc.
void* allocate_aligned(std::size_t n_bytes);

// Frees a block of allocate_aligned; null is allowed.
void free_aligned(void* block) noexcept;

// Returns freed memory to the system where the C library would keep it for later (glibc).
void return_free_memory();

}  // namespace spinney::common
