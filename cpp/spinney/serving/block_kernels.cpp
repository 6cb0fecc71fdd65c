#include "spinney/serving/block_kernels.h"

#include <vector>

#include "spinney/common/dispatch.h"

namespace spinney::serving {

namespace {

std::vector<const BlockKernels*> find_supported() {
  std::vector<const BlockKernels*> found{&baseline_block_kernels};
#if defined(__x86_64__)
  using common::InstructionSet;
  if (common::instruction_set >= InstructionSet::avx2) found.push_back(&avx2_block_kernels);
  if (common::instruction_set >= InstructionSet::avx512) found.push_back(&avx512_block_kernels);
#elif defined(__aarch64__)
  found.push_back(&neon_block_kernels);
#endif
  return found;
}

}  // namespace

std::span<const BlockKernels* const> supported_block_kernels() {
  static const std::vector<const BlockKernels*> supported = find_supported();
  return supported;
}

const BlockKernels& block_kernels() { return *supported_block_kernels().back(); }

}  // namespace spinney::serving
