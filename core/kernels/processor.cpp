#include "kernels/processor.hpp"

#ifdef POLYLEAF_X86
// Asked for directly: __builtin_cpu_supports needs a library that clang-cl does not link.
#include <cpuid.h>
#endif

namespace polyleaf {

#ifdef POLYLEAF_X86
namespace {

bool has(unsigned bits, unsigned wanted) { return (bits & wanted) == wanted; }

// The registers that the system saves when it goes from one thread to another.
unsigned saved_registers() {
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

constexpr unsigned kSavesAvx = 0x06;     // XMM and YMM
constexpr unsigned kSavesAvx512 = 0xe6;  // masks and ZMM, too

}  // namespace

InstructionSets instruction_sets() {
  InstructionSets found;
  unsigned a, b, c, d;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || !has(c, bit_OSXSAVE | bit_AVX)) return found;
  const unsigned saved = saved_registers();
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return found;
  found.avx2 = has(saved, kSavesAvx) && has(b, bit_AVX2);
  found.avx512 =
      found.avx2 && has(saved, kSavesAvx512) && has(b, bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL);
  return found;
}
#else
InstructionSets instruction_sets() { return {}; }
#endif

}  // namespace polyleaf
