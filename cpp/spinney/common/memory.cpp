#include "spinney/common/memory.h"

#include <cstdlib>
#include <new>

#if defined(_WIN32) || defined(__GLIBC__)
#include <malloc.h>
#endif
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace spinney::common {

namespace {

constexpr std::size_t cache_line = 64;
constexpr std::size_t large_page = std::size_t{1} << 21;

}  // namespace

void* allocate_aligned(std::size_t n_bytes) {
  const bool large = n_bytes >= 2 * large_page;
  const std::size_t unit = large ? large_page : cache_line;
#if defined(_WIN32)
  void* const block = _aligned_malloc(n_bytes, unit);
#else
  void* const block = std::aligned_alloc(unit, (n_bytes + unit - 1) / unit * unit);
#endif
  if (block == nullptr) throw std::bad_alloc();
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  // Whole pages only: most of the last one would be unused.
  if (large) madvise(block, n_bytes / unit * unit, MADV_HUGEPAGE);
#endif
  return block;
}

void free_aligned(void* block) noexcept {
#if defined(_WIN32)
  _aligned_free(block);
#else
  std::free(block);
#endif
}

void return_free_memory() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace spinney::common
