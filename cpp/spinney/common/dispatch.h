// Instruction sets are chosen at run time. A *kernel* is a SPINNEY_INLINE function:
//
//   SPINNEY_INLINE double sum_kernel(const double* values, std::size_t n) { … }
//   double sum(const double* values, std::size_t n) { return dispatch<sum_kernel>(values, n); }
//
// `dispatch` compiles the kernel for the baseline, for AVX2 and for AVX-512, and calls the version
// for this processor. An instance of a function template works too: dispatch<sum_kernel<float>>.
// Functions that the kernel calls in its loops must be SPINNEY_INLINE as well, or they run with
// baseline instructions. The build forbids contraction of a*b+c, so all versions give the same
// bits. On processors other than x86-64 there is one version.
#pragma once

#include "spinney/common/compiler.h"

namespace spinney::common {

// The levels x86-64 (or the only level of another processor), x86-64-v3 and x86-64-v4.
enum class InstructionSet { baseline, avx2, avx512 };

// The set in use: the best one of the processor, or a lower one that the environment variable
// SPINNEY_ISA names.
extern const InstructionSet instruction_set;

// "baseline", "avx2" or "avx512".
const char* instruction_set_name();

// Throws InputError if SPINNEY_ISA is set to an unknown name.
void check_instruction_set();

// Whether the processor has the carry-less product (PCLMULQDQ); false if SPINNEY_ISA=baseline.
extern const bool has_carryless_product;

namespace detail {

template <auto kernel, class Function = decltype(kernel)>
struct Versions;

template <auto kernel, class Result, class... Arguments>
struct Versions<kernel, Result (*)(Arguments...)> {
#if defined(__x86_64__)
#if defined(__clang__)
// By feature: with arch=, options such as -mno-avx2 stay in force, and Zig passes them all.
#define SPINNEY_FEATURES_V3 "avx2,bmi,bmi2,f16c,fma,lzcnt,movbe,popcnt"
#define SPINNEY_FEATURES_V4 SPINNEY_FEATURES_V3 ",avx512f,avx512bw,avx512cd,avx512dq,avx512vl"
#define SPINNEY_TARGET_AVX2 __attribute__((target(SPINNEY_FEATURES_V3)))
#define SPINNEY_TARGET_AVX512 __attribute__((target(SPINNEY_FEATURES_V4), min_vector_width(512)))
#else
#define SPINNEY_TARGET_AVX2 __attribute__((target("arch=x86-64-v3")))
#define SPINNEY_TARGET_AVX512 __attribute__((target("arch=x86-64-v4")))
#endif
  static Result baseline(Arguments... arguments) {
    return kernel(static_cast<Arguments&&>(arguments)...);
  }
  SPINNEY_TARGET_AVX2 static Result avx2(Arguments... arguments) {
    return kernel(static_cast<Arguments&&>(arguments)...);
  }
  SPINNEY_TARGET_AVX512 static Result avx512(Arguments... arguments) {
    return kernel(static_cast<Arguments&&>(arguments)...);
  }
#undef SPINNEY_TARGET_AVX512
#undef SPINNEY_TARGET_AVX2
#if defined(__clang__)
#undef SPINNEY_FEATURES_V4
#undef SPINNEY_FEATURES_V3
#endif

  Result operator()(Arguments... arguments) const {
    switch (instruction_set) {
      case InstructionSet::avx512:
        return avx512(static_cast<Arguments&&>(arguments)...);
      case InstructionSet::avx2:
        return avx2(static_cast<Arguments&&>(arguments)...);
      default:
        return baseline(static_cast<Arguments&&>(arguments)...);
    }
  }
#else
  Result operator()(Arguments... arguments) const {
    return kernel(static_cast<Arguments&&>(arguments)...);
  }
#endif
};

}  // namespace detail

// dispatch<kernel>(arguments…) calls the version of the kernel for this processor.
template <auto kernel>
inline constexpr detail::Versions<kernel> dispatch{};

}  // namespace spinney::common
