#include "spinney/common/dispatch.h"

#include <cstdlib>
#include <string>
#include <string_view>

#include "spinney/common/check.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace spinney::common {

namespace {

constexpr const char* variable = "SPINNEY_ISA";
constexpr const char* names[] = {"baseline", "avx2", "avx512"};
constexpr int n_names = 3;

// The index of a name, or n_names.
int find_name(const char* text) {
  int i = 0;
  while (i < n_names && std::string_view(text) != names[i]) ++i;
  return i;
}

// SPINNEY_ISA, or the highest set if the variable is missing, empty or wrong.
InstructionSet allowed() {
  const char* const text = std::getenv(variable);
  const int found = text == nullptr ? n_names : find_name(text);
  return found < n_names ? static_cast<InstructionSet>(found) : InstructionSet::avx512;
}

#if defined(__x86_64__)

struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(unsigned leaf) {
  Registers out;
  if (__get_cpuid_count(leaf, 0, &out.a, &out.b, &out.c, &out.d) == 0) return {};
  return out;
}

// Bits of the registers that the operating system saves.
unsigned saved_registers() {
  unsigned low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

bool has_all(unsigned bits, unsigned needed) { return (bits & needed) == needed; }

InstructionSet supported() {
  const Registers basic = cpuid(1);
  const Registers extended = cpuid(7);
  const Registers amd = cpuid(0x80000001);
  constexpr unsigned save_avx = 0x06, save_avx512 = 0xe6;
  constexpr unsigned basic_v3 = bit_SSE3 | bit_SSSE3 | bit_FMA | bit_CMPXCHG16B | bit_SSE4_1 |
                                bit_SSE4_2 | bit_MOVBE | bit_POPCNT | bit_OSXSAVE | bit_AVX |
                                bit_F16C;
  constexpr unsigned extended_v3 = bit_BMI | bit_AVX2 | bit_BMI2;
  constexpr unsigned amd_v3 = bit_LAHF_LM | bit_LZCNT;
  constexpr unsigned extended_v4 =
      bit_AVX512F | bit_AVX512DQ | bit_AVX512CD | bit_AVX512BW | bit_AVX512VL;
  if (!has_all(basic.c, basic_v3) || !has_all(extended.b, extended_v3) || !has_all(amd.c, amd_v3)) {
    return InstructionSet::baseline;
  }
  const unsigned saved = saved_registers();
  if (!has_all(saved, save_avx)) return InstructionSet::baseline;
  const bool has_v4 = has_all(extended.b, extended_v4) && has_all(saved, save_avx512);
  return has_v4 ? InstructionSet::avx512 : InstructionSet::avx2;
}

bool supports_carryless_product() { return has_all(cpuid(1).c, bit_PCLMUL); }

#else

InstructionSet supported() { return InstructionSet::baseline; }
bool supports_carryless_product() { return false; }

#endif

InstructionSet choose() {
  const InstructionSet best = supported(), limit = allowed();
  return best < limit ? best : limit;
}

}  // namespace

// Code that runs before these are initialised finds the baseline, which every processor has.
const InstructionSet instruction_set = choose();
const bool has_carryless_product =
    allowed() != InstructionSet::baseline && supports_carryless_product();

const char* instruction_set_name() { return names[static_cast<int>(instruction_set)]; }

void check_instruction_set() {
  const char* const text = std::getenv(variable);
  if (text == nullptr || *text == '\0' || find_name(text) < n_names) return;
  throw InputError(std::string("the environment variable SPINNEY_ISA must be \"baseline\", "
                               "\"avx2\" or \"avx512\"; got \"") +
                   text + "\"");
}

}  // namespace spinney::common
