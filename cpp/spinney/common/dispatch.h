// Instruction sets are chosen at run time. A function marked SPINNEY_KERNEL is compiled for the
// baseline, for AVX2 and for AVX-512, and the loader picks one; what it calls must be inlined into
// it (SPINNEY_INLINE). The build forbids contraction of a*b+c, so all versions give the same bits.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__linux__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if __GNUC__ >= 12
// Levels, not processors: "arch=haswell" would be chosen on that one processor of one maker only.
#define SPINNEY_KERNEL __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define SPINNEY_KERNEL __attribute__((target_clones("default", "avx2", "avx512f")))
#endif
#else
#define SPINNEY_KERNEL
#endif

#if defined(__GNUC__)
#define SPINNEY_INLINE inline __attribute__((always_inline))
#else
#define SPINNEY_INLINE inline
#endif
