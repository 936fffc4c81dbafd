#include <cstring>

#include "kernels/cut.hpp"
#include "kernels/histogram.hpp"
#include "kernels/kernels.hpp"
#include "kernels/predict.hpp"

namespace polyleaf {

#define POLYLEAF_DECLARE(isa)                      \
  namespace isa {                                  \
  extern const Kernels kKernels;                   \
  extern const HistogramKernels kHistogramKernels; \
  extern const SearchKernels kSearchKernels;       \
  extern const PredictKernels kPredictKernels;     \
  }
POLYLEAF_DECLARE(baseline)
#ifdef POLYLEAF_X86
POLYLEAF_DECLARE(avx2)
POLYLEAF_DECLARE(avx512)
#endif

namespace {

// What was compiled for one instruction set.
struct Compiled {
  const Kernels* kernels;
  const HistogramKernels* histogram;
  const SearchKernels* search;
  const PredictKernels* predict;
};

constexpr Compiled kBaseline{&baseline::kKernels, &baseline::kHistogramKernels, &baseline::kSearchKernels,
                             &baseline::kPredictKernels};
#ifdef POLYLEAF_X86
constexpr Compiled kAvx2{&avx2::kKernels, &avx2::kHistogramKernels, &avx2::kSearchKernels, &avx2::kPredictKernels};
constexpr Compiled kAvx512{&avx512::kKernels, &avx512::kHistogramKernels, &avx512::kSearchKernels,
                           &avx512::kPredictKernels};
#endif

// The best the machine has; with a name, that one, or null.
const Compiled* find(const char* name) {
#ifdef POLYLEAF_X86
  const bool has_avx2 = __builtin_cpu_supports("avx2");
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const auto wanted = [&](const char* isa) { return name == nullptr || std::strcmp(name, isa) == 0; };
  if (has_avx512 && wanted("avx512")) return &kAvx512;
  if (has_avx2 && wanted("avx2")) return &kAvx2;
#endif
  return name == nullptr || std::strcmp(name, "baseline") == 0 ? &kBaseline : nullptr;
}

const Compiled*& selected() {
  static const Compiled* chosen = find(nullptr);
  return chosen;
}

}  // namespace

const Kernels& kernels() { return *selected()->kernels; }

const HistogramKernels& histogram_kernels() { return *selected()->histogram; }

const SearchKernels& search_kernels() { return *selected()->search; }

const PredictKernels& predict_kernels() { return *selected()->predict; }

bool select_kernels(const char* name) {
  const Compiled* compiled = find(name);
  if (compiled == nullptr) return false;
  selected() = compiled;
  return true;
}

}  // namespace polyleaf
