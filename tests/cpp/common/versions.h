// The versions of a kernel that this processor can run.
#pragma once

#include <vector>

#include "spinney/common/dispatch.h"

namespace testing {

template <auto kernel>
std::vector<decltype(kernel)> versions() {
#if defined(__x86_64__)
  using spinney::common::InstructionSet;
  using Versions = spinney::common::detail::Versions<kernel>;
  std::vector<decltype(kernel)> out = {Versions::baseline};
  if (spinney::common::instruction_set >= InstructionSet::avx2) out.push_back(Versions::avx2);
  if (spinney::common::instruction_set >= InstructionSet::avx512) out.push_back(Versions::avx512);
  return out;
#else
  return {[](auto... arguments) { return kernel(arguments...); }};
#endif
}

}  // namespace testing
