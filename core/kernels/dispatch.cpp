#include "kernels/dispatch.hpp"

#include <cstring>

#include "kernels/cut.hpp"
#include "kernels/estimate.hpp"
#include "kernels/explain.hpp"
#include "kernels/gradient.hpp"
#include "kernels/histogram.hpp"
#include "kernels/label_bound.hpp"
#include "kernels/leaf.hpp"
#include "kernels/predict.hpp"
#include "kernels/processor.hpp"
#include "kernels/score.hpp"
#include "kernels/sum.hpp"
#include "kernels/top_bound.hpp"

namespace polyleaf {

#define POLYLEAF_DECLARE(isa)                        \
  namespace isa {                                    \
  extern const CutKernels kCutKernels;               \
  extern const EstimateKernels kEstimateKernels;     \
  extern const ExplainKernels kExplainKernels;       \
  extern const GradientKernels kGradientKernels;     \
  extern const HistogramKernels kHistogramKernels;   \
  extern const LabelBoundKernels kLabelBoundKernels; \
  extern const LeafKernels kLeafKernels;             \
  extern const PredictKernels kPredictKernels;       \
  extern const ScoreKernels kScoreKernels;           \
  extern const SumKernels kSumKernels;               \
  extern const TopBoundKernels kTopBoundKernels;     \
  }
POLYLEAF_DECLARE(baseline)
#ifdef POLYLEAF_X86
POLYLEAF_DECLARE(avx2)
POLYLEAF_DECLARE(avx512)
#endif
#undef POLYLEAF_DECLARE

namespace {

// What was compiled for one instruction set.
struct Compiled {
  const char* name;
  const CutKernels* cut;
  const EstimateKernels* estimate;
  const ExplainKernels* explain;
  const GradientKernels* gradient;
  const HistogramKernels* histogram;
  const LabelBoundKernels* label_bound;
  const LeafKernels* leaf;
  const PredictKernels* predict;
  const ScoreKernels* score;
  const SumKernels* sum;
  const TopBoundKernels* top_bound;
};

#define POLYLEAF_COMPILED(isa) \
  {#isa,                       \
   &isa::kCutKernels,          \
   &isa::kEstimateKernels,     \
   &isa::kExplainKernels,      \
   &isa::kGradientKernels,     \
   &isa::kHistogramKernels,    \
   &isa::kLabelBoundKernels,   \
   &isa::kLeafKernels,         \
   &isa::kPredictKernels,      \
   &isa::kScoreKernels,        \
   &isa::kSumKernels,          \
   &isa::kTopBoundKernels}
constexpr Compiled kBaseline = POLYLEAF_COMPILED(baseline);
#ifdef POLYLEAF_X86
constexpr Compiled kAvx2 = POLYLEAF_COMPILED(avx2);
constexpr Compiled kAvx512 = POLYLEAF_COMPILED(avx512);
#endif
#undef POLYLEAF_COMPILED

// The best the machine has; with a name, that one, or null.
const Compiled* find(const char* name) {
#ifdef POLYLEAF_X86
  const InstructionSets there = instruction_sets();
  const auto wanted = [&](const char* isa) { return name == nullptr || std::strcmp(name, isa) == 0; };
  if (there.avx512 && wanted("avx512")) return &kAvx512;
  if (there.avx2 && wanted("avx2")) return &kAvx2;
#endif
  return name == nullptr || std::strcmp(name, "baseline") == 0 ? &kBaseline : nullptr;
}

const Compiled*& selected() {
  static const Compiled* chosen = find(nullptr);
  return chosen;
}

}  // namespace

const CutKernels& cut_kernels() { return *selected()->cut; }

const EstimateKernels& estimate_kernels() { return *selected()->estimate; }

const ExplainKernels& explain_kernels() { return *selected()->explain; }

const GradientKernels& gradient_kernels() { return *selected()->gradient; }

const HistogramKernels& histogram_kernels() { return *selected()->histogram; }

const LabelBoundKernels& label_bound_kernels() { return *selected()->label_bound; }

const LeafKernels& leaf_kernels() { return *selected()->leaf; }

const PredictKernels& predict_kernels() { return *selected()->predict; }

const ScoreKernels& score_kernels() { return *selected()->score; }

const SumKernels& sum_kernels() { return *selected()->sum; }

const TopBoundKernels& top_bound_kernels() { return *selected()->top_bound; }

const char* kernels_in_use() { return selected()->name; }

bool select_kernels(const char* name) {
  const Compiled* compiled = find(name);
  if (compiled == nullptr) return false;
  selected() = compiled;
  return true;
}

}  // namespace polyleaf
