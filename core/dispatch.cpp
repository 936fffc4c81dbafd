#include <cstring>

#include "kernels.hpp"
#include "search_kernels.hpp"

namespace polyleaf {

namespace baseline {
extern const Kernels kKernels;
extern const SearchKernels kSearchKernels;
}  // namespace baseline
#ifdef POLYLEAF_X86
namespace avx2 {
extern const Kernels kKernels;
extern const SearchKernels kSearchKernels;
}  // namespace avx2
namespace avx512 {
extern const Kernels kKernels;
extern const SearchKernels kSearchKernels;
}  // namespace avx512
#endif

namespace {

const Kernels* find(const char* name) {
#ifdef POLYLEAF_X86
  const bool has_avx2 = __builtin_cpu_supports("avx2");
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const auto wanted = [&](const char* isa) { return name == nullptr || std::strcmp(name, isa) == 0; };
  if (has_avx512 && wanted("avx512")) return &avx512::kKernels;
  if (has_avx2 && wanted("avx2")) return &avx2::kKernels;
#endif
  return name == nullptr || std::strcmp(name, "baseline") == 0 ? &baseline::kKernels : nullptr;
}

const Kernels*& selected() {
  static const Kernels* kernels = find(nullptr);
  return kernels;
}

}  // namespace

const Kernels& kernels() { return *selected(); }

const SearchKernels& search_kernels() {
#ifdef POLYLEAF_X86
  if (selected() == &avx512::kKernels) return avx512::kSearchKernels;
  if (selected() == &avx2::kKernels) return avx2::kSearchKernels;
#endif
  return baseline::kSearchKernels;
}

bool select_kernels(const char* name) {
  const Kernels* kernels = find(name);
  if (kernels == nullptr) return false;
  selected() = kernels;
  return true;
}

}  // namespace polyleaf
