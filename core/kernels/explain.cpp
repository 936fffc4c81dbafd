#include "kernels/explain.hpp"

#include "rules/routing.hpp"

#ifndef POLYLEAF_ISA
#error "POLYLEAF_ISA names the instruction set this file is compiled for"
#endif

namespace polyleaf {
namespace POLYLEAF_ISA {
namespace {

// As many rows as a register holds: the compiler takes wider vectors apart, row by row.
#if defined(__AVX512F__)
constexpr std::size_t kWidth = 8;
#elif defined(__AVX2__)
constexpr std::size_t kWidth = 4;
#else
constexpr std::size_t kWidth = 2;
#endif
constexpr std::size_t kParts = kRowsTogether / kWidth;  // of the vectors that the caller has
typedef double Rows __attribute__((vector_size(kWidth * 8), may_alias));
typedef std::int64_t Mask __attribute__((vector_size(kWidth * 8), may_alias));  // all bits, or none

// The state of the way down, a level below the other.
struct Levels {
  Mask* right;     // who goes right at the split above
  Mask* one;       // who fulfils the splits by this feature down to here
  Rows* product;   // of the factors, for each point
  Rows* quotient;  // what the feature gets, before the product, for each point
};

inline void go_right(const PathForest& forest, const PathStep& step, const Rows* x, Mask& right) {
  const Rows value = x[step.column * kParts];
  if (step.set >= 0) {
    const CategoryWords& set = forest.sets[step.set];
    for (std::size_t lane = 0; lane < kWidth; ++lane) {
      const bool in_set = has_number(set.words, set.n_words, value[lane]);
      right[lane] = category_goes_left(in_set, !step.missing_right) ? 0 : -1;
    }
    return;
  }
  right = (Mask)(value > step.threshold);
  if (step.missing_right) right |= (Mask)(value != value);
}

// The weights of all elements of a batch. Points: 0 where the number is known at run time only.
template <std::size_t Points>
void weigh(const PathForest& forest, const PathTree& tree, const LeafBatch& batch, const Rows* x, const Levels& levels,
           Rows* weights) {
  const std::size_t n = Points > 0 ? Points : tree.n_points;
  const double* unfulfilled = forest.unfulfilled + unfulfilled_begin(n);
  const PathElement* element = forest.elements + batch.element_begin;
  for (std::size_t i = batch.step_begin; i < batch.step_end; ++i) {
    const PathStep& step = forest.steps[i];
    const std::size_t depth = step.depth;
    if (!step.right) go_right(forest, step, x, levels.right[depth]);
    Mask one = step.right ? levels.right[depth] : ~levels.right[depth];
    const double* fulfilled = forest.tables + tree.table_begin + (i - tree.step_begin) * 4 * n;
    const double *first_not = fulfilled + n, *not_before = first_not + n, *gets = not_before + n;
    const Rows* from = levels.product + (depth - 1) * n;
    Rows* product = levels.product + depth * n;
    Rows* quotient = levels.quotient + depth * n;
    if (step.above == 0) {
      for (std::size_t q = 0; q < n; ++q) product[q] = from[q] * (one ? Rows{} + fulfilled[q] : Rows{} + first_not[q]);
    } else {
      const Mask before = levels.one[step.above];
      one &= before;
      for (std::size_t q = 0; q < n; ++q) {
        const Rows otherwise = before ? Rows{} + first_not[q] : Rows{} + not_before[q];
        product[q] = from[q] * (one ? Rows{} + fulfilled[q] : otherwise);
      }
    }
    levels.one[depth] = one;
    for (std::size_t q = 0; q < n; ++q) quotient[q] = one ? Rows{} + gets[q] : Rows{} + unfulfilled[q];
    for (std::uint32_t e = 0; e < step.n_elements; ++e, ++element) {
      const Rows* of = levels.quotient + element->depth * n;
      Rows sum = product[0] * of[0];
      for (std::size_t q = 1; q < n; ++q) sum += product[q] * of[q];
      weights[element->slot] = sum;
    }
  }
}

// Adds to a few outputs of each feature. Sums stay in registers while a feature's leaves are gone through.
template <std::size_t Outputs>
void add_piece(const PathForest& forest, const LeafBatch& batch, const Rows* weights, const double* values,
               Rows* sums) {
  const std::uint32_t* leaf_of_slot = forest.leaf_of_slot + batch.slot_begin;
  for (std::size_t r = batch.run_begin; r < batch.run_end; ++r) {
    const FeatureRun& run = forest.runs[r];
    Rows* to = sums + run.column * forest.n_outputs * kParts;
    Rows sum[Outputs];
    for (std::size_t k = 0; k < Outputs; ++k) sum[k] = to[k * kParts];
    for (std::uint32_t slot = run.begin; slot < run.end; ++slot) {
      const Rows weight = weights[slot];
      const double* value = values + leaf_of_slot[slot] * Outputs;
      for (std::size_t k = 0; k < Outputs; ++k) sum[k] += weight * value[k];
    }
    for (std::size_t k = 0; k < Outputs; ++k) to[k * kParts] = sum[k];
  }
}

void add_dense(const PathForest& forest, const PathTree& tree, const LeafBatch& batch, const Rows* weights,
               Rows* sums) {
  const double* values = forest.values + forest.value_begin[batch.first_leaf];
  std::size_t k = 0;
  for (; k + kOutputsTogether <= tree.n_outputs; k += kOutputsTogether)
    add_piece<kOutputsTogether>(forest, batch, weights, values + k * batch.n_leaves, sums + k * kParts);
  values += k * batch.n_leaves;
  static_assert(kOutputsTogether == 8);
  switch (tree.n_outputs - k) {
    case 1:
      return add_piece<1>(forest, batch, weights, values, sums + k * kParts);
    case 2:
      return add_piece<2>(forest, batch, weights, values, sums + k * kParts);
    case 3:
      return add_piece<3>(forest, batch, weights, values, sums + k * kParts);
    case 4:
      return add_piece<4>(forest, batch, weights, values, sums + k * kParts);
    case 5:
      return add_piece<5>(forest, batch, weights, values, sums + k * kParts);
    case 6:
      return add_piece<6>(forest, batch, weights, values, sums + k * kParts);
    case 7:
      return add_piece<7>(forest, batch, weights, values, sums + k * kParts);
    default:
      return;
  }
}

void add_sparse(const PathForest& forest, const LeafBatch& batch, const Rows* weights, Rows* sums) {
  const std::uint32_t* leaf_of_slot = forest.leaf_of_slot + batch.slot_begin;
  for (std::size_t r = batch.run_begin; r < batch.run_end; ++r) {
    const FeatureRun& run = forest.runs[r];
    Rows* to = sums + run.column * forest.n_outputs * kParts;
    for (std::uint32_t slot = run.begin; slot < run.end; ++slot) {
      const std::size_t leaf = batch.first_leaf + leaf_of_slot[slot];
      for (std::size_t v = forest.value_begin[leaf]; v < forest.value_begin[leaf + 1]; ++v)
        to[forest.value_output[v] * kParts] += weights[slot] * forest.values[v];
    }
  }
}

void add_part(const PathForest& forest, const PathTree& tree, const Rows* rows, double* scratch, double* weights,
              Rows* sums) {
  Levels levels;
  levels.right = reinterpret_cast<Mask*>(scratch);
  levels.one = levels.right + tree.n_depths;
  levels.product = reinterpret_cast<Rows*>(levels.one + tree.n_depths);
  levels.quotient = levels.product + tree.n_depths * tree.n_points;
  for (std::size_t q = 0; q < tree.n_points; ++q) levels.product[q] = Rows{} + 1.0;
  auto* of_slots = reinterpret_cast<Rows*>(weights);
  Rows* to = sums + tree.first_output * kParts;
  for (std::size_t b = tree.batch_begin; b < tree.batch_end; ++b) {
    const LeafBatch& batch = forest.batches[b];
    switch (tree.n_points) {
      case 1:
        weigh<1>(forest, tree, batch, rows, levels, of_slots);
        break;
      case 2:
        weigh<2>(forest, tree, batch, rows, levels, of_slots);
        break;
      case 3:
        weigh<3>(forest, tree, batch, rows, levels, of_slots);
        break;
      case 4:
        weigh<4>(forest, tree, batch, rows, levels, of_slots);
        break;
      case 5:
        weigh<5>(forest, tree, batch, rows, levels, of_slots);
        break;
      default:
        weigh<0>(forest, tree, batch, rows, levels, of_slots);
    }
    if (forest.value_output == nullptr)
      add_dense(forest, tree, batch, of_slots, to);
    else
      add_sparse(forest, batch, of_slots, sums);
  }
}

void add_tree(const PathForest& forest, const PathTree& tree, const double* x, double* scratch, double* weights,
              double* sums) {
  for (std::size_t part = 0; part < kParts; ++part)
    add_part(forest, tree, reinterpret_cast<const Rows*>(x) + part, scratch, weights,
             reinterpret_cast<Rows*>(sums) + part);
}

}  // namespace

extern const ExplainKernels kExplainKernels;
const ExplainKernels kExplainKernels = {add_tree};

}  // namespace POLYLEAF_ISA
}  // namespace polyleaf
