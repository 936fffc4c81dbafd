#include "kernels/predict.hpp"

#include <type_traits>
#include <utility>

#include "rules/routing.hpp"

#if defined(__AVX512BW__)
#include <immintrin.h>
#endif

#ifndef POLYLEAF_ISA
#error "POLYLEAF_ISA names the instruction set this file is compiled for"
#endif

namespace polyleaf {
namespace POLYLEAF_ISA {
namespace {

#if defined(__AVX512BW__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

template <class T, int Lanes>
struct VectorOf {
  typedef T type __attribute__((vector_size(Lanes * sizeof(T))));
};
template <class T, int Lanes = kVectorBytes / static_cast<int>(sizeof(T))>
using Vector = typename VectorOf<T, Lanes>::type;

// From and to wherever numbers may lie. (As arguments of templates, types lose what else they say of alignment.)
template <class V, class T>
inline V load(const T* from) {
  V v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

template <class V, class T>
inline void store(T* to, const V& v) {
  __builtin_memcpy(to, &v, sizeof v);
}

// --- codes ---

template <class Value>
inline std::size_t cuts_below(Value value, const Value* cuts, std::size_t n) {
  const Value* first = cuts;
  while (n > 1) {
    const std::size_t half = n / 2;
    first += first[half - 1] < value ? half : 0;
    n -= half;
  }
  return static_cast<std::size_t>(first - cuts) + (n == 1 && *first < value ? 1 : 0);
}

template <class Value>
struct SameSize;
template <>
struct SameSize<float> {
  using Integer = std::int32_t;
};
template <>
struct SameSize<double> {
  using Integer = std::int64_t;
};

template <class Value, class Code>
bool encode(const Value* values, const Value* cuts, std::size_t n_cuts, Code* codes, Code* second) {
  using Integer = typename SameSize<Value>::Integer;
  constexpr Integer kLeast = sizeof(Code) == 1 ? -128 : -32768;
  constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(Value));
  // Above this many cuts a search per value is cheaper than counting for whole vectors of values.
  constexpr std::size_t kMostCounted = 16 * kLanes;
  alignas(64) Integer counts[kBlockRows];
  if (n_cuts > kMostCounted) {
    for (std::size_t i = 0; i < kBlockRows; ++i)
      counts[i] = kLeast + static_cast<Integer>(cuts_below(values[i], cuts, n_cuts));
  } else {
    using V = Vector<Value>;
    using I = Vector<Integer>;
    constexpr int kTogether = 4;
    for (std::size_t i = 0; i < kBlockRows; i += kTogether * kLanes) {
      V value[kTogether];
      I count[kTogether];
      for (int k = 0; k < kTogether; ++k) {
        value[k] = load<V>(values + i + k * kLanes);
        count[k] = I{} + kLeast;
      }
      for (std::size_t c = 0; c < n_cuts; ++c) {
        const V cut = V{} + cuts[c];
        for (int k = 0; k < kTogether; ++k) count[k] = value[k] > cut ? count[k] + 1 : count[k];
      }
      for (int k = 0; k < kTogether; ++k) store(counts + i + k * kLanes, count[k]);
    }
  }
  for (std::size_t i = 0; i < kBlockRows; ++i) codes[i] = static_cast<Code>(counts[i]);
  Integer missing = 0;
  for (std::size_t i = 0; i < kBlockRows; ++i) missing |= values[i] != values[i] ? 1 : 0;
  if (second != nullptr)
    for (std::size_t i = 0; i < kBlockRows; ++i)
      second[i] = values[i] != values[i] ? static_cast<Code>(-(kLeast + 1)) : codes[i];
  return missing != 0;
}

template <class Value>
bool encode_any(const Value* values, const Value* cuts, std::size_t n_cuts, bool wide, void* codes, void* second) {
  if (wide) return encode(values, cuts, n_cuts, static_cast<std::int16_t*>(codes), static_cast<std::int16_t*>(second));
  return encode(values, cuts, n_cuts, static_cast<std::int8_t*>(codes), static_cast<std::int8_t*>(second));
}

// --- leaves ---

template <bool Missing, class Node, class Code>
inline const Code* column_of(const Node& node, const Code* codes) {
  return codes + (Missing ? std::size_t{2} * node.column + node.right_if_missing : node.column);
}

template <class Code>
inline Vector<Code> cut_of(const SelectNode& node) {
  return reinterpret_cast<Vector<Code>>(Vector<std::int32_t>{} + static_cast<std::int32_t>(node.cut));
}

template <bool Missing, class Code>
void select_leaves(const CodedTree& tree, const Code* codes, Code* slots, std::uint16_t* leaves) {
  using V = Vector<Code>;
  constexpr std::size_t kLanes = sizeof(V) / sizeof(Code);
  constexpr std::size_t kParts = kBlockRows / kLanes;
  Code* result = slots + kMostSelectLeaves * kBlockRows;
  const SelectNode* node = tree.select;
  const SelectNode* const pairs_end = node + tree.n_pairs;
  const SelectNode* const end = node + tree.n_select;
  using Leaves = Vector<typename std::make_unsigned<Code>::type>;
  Leaves left = Leaves{}, right = left + 1;
  for (; node != pairs_end; ++node, result += kBlockRows) {
    const Code* column = column_of<Missing>(*node, codes);
    const V cut = cut_of<Code>(*node);
    for (std::size_t p = 0; p < kParts; ++p)
      store(result + p * kLanes, is_right_of(load<V>(column + p * kLanes), cut) ? right : left);
    left += 2;
    right += 2;
  }
  for (; node != end; ++node, result += kBlockRows) {
    const Code* column = column_of<Missing>(*node, codes);
    const V cut = cut_of<Code>(*node);
    const Code* of_left = slots + node->left * kBlockRows;
    const Code* of_right = slots + node->right * kBlockRows;
    for (std::size_t p = 0; p < kParts; ++p)
      store(result + p * kLanes, is_right_of(load<V>(column + p * kLanes), cut) ? load<V>(of_right + p * kLanes)
                                                                                : load<V>(of_left + p * kLanes));
  }
  result -= kBlockRows;  // of the root
  for (std::size_t i = 0; i < kBlockRows; ++i) leaves[i] = static_cast<std::uint8_t>(result[i]);
}

// Which of a block's codes are above a cut (filled up to 32 bits with copies): bit i of row i.
#if defined(__AVX512BW__)

inline std::uint64_t rows_above(const std::int8_t* codes, std::uint32_t cut) {
  return _mm512_cmpgt_epi8_mask(_mm512_loadu_si512(codes), _mm512_set1_epi32(static_cast<int>(cut)));
}

inline std::uint64_t rows_above(const std::int16_t* codes, std::uint32_t cut) {
  const __m512i cuts = _mm512_set1_epi32(static_cast<int>(cut));
  const std::uint64_t low = _mm512_cmpgt_epi16_mask(_mm512_loadu_si512(codes), cuts);
  const std::uint64_t high = _mm512_cmpgt_epi16_mask(_mm512_loadu_si512(codes + 32), cuts);
  return low | high << 32;
}

#else

template <class Code>
inline std::uint64_t rows_above(const Code* codes, std::uint32_t cut) {
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < kBlockRows; ++i)
    mask |= static_cast<std::uint64_t>(is_right_of(codes[i], static_cast<Code>(cut)) ? 1 : 0) << i;
  return mask;
}

#endif

#if defined(__AVX512BW__)
constexpr bool kHasMasks = true;
#else
constexpr bool kHasMasks = false;  // where masks take a step more they are no faster
#endif

// Of the masks of a level's splits, for each row that of the split it comes to. `right`: where it went at the root, at
// the level below, ... The ways that are known first are taken first, so that only the last has to be waited for.
template <int Size>
inline std::uint64_t of_way(const std::uint64_t* masks, const std::uint64_t* right) {
  if constexpr (Size == 1) {
    return masks[0];
  } else {
    alignas(64) std::uint64_t half[Size / 2];
    for (int i = 0; i < Size / 2; ++i) half[i] = (masks[i] & ~right[0]) | (masks[Size / 2 + i] & right[0]);
    return of_way<Size / 2>(half, right + 1);
  }
}

template <int... Level>
inline void find_ways(const std::uint64_t* masks, std::uint32_t depth, std::uint64_t* right,
                      std::integer_sequence<int, Level...>) {
  (void)((static_cast<std::uint32_t>(Level) < depth &&
          (right[Level] = of_way<1 << Level>(masks + (1 << Level), right), true)) &&
         ...);
}

// The ways as numbers: at the root stands the highest bit.
inline void numbers_of_ways(const std::uint64_t* right, std::uint32_t depth, std::uint16_t* leaves) {
#if defined(__AVX512BW__)
  __m512i number = _mm512_setzero_si512();
  for (std::uint32_t level = 0; level < depth; ++level)
    number = _mm512_or_si512(_mm512_add_epi8(number, number), _mm512_maskz_set1_epi8(right[level], 1));
  _mm512_storeu_si512(leaves, _mm512_cvtepu8_epi16(_mm512_castsi512_si256(number)));
  _mm512_storeu_si512(leaves + 32, _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(number, 1)));
#else
  for (std::size_t i = 0; i < kBlockRows; ++i) {
    std::uint64_t number = 0;
    for (std::uint32_t level = 0; level < depth; ++level) number = number << 1 | (right[level] >> i & 1);
    leaves[i] = static_cast<std::uint16_t>(number);
  }
#endif
}

template <class Code>
inline std::uint64_t* masks_of(Code* slots) {
  return reinterpret_cast<std::uint64_t*>(slots + 2 * kMostSelectLeaves * kBlockRows);
}

template <bool Missing, class Code>
void mask_leaves(const CodedTree& tree, const Code* codes, std::uint64_t* masks, std::uint16_t* leaves) {
  for (const MaskNode *node = tree.mask, *end = node + tree.n_mask; node != end; ++node)
    masks[node->place] = rows_above(column_of<Missing>(*node, codes), node->cut);
  std::uint64_t right[kMostMaskDepth];
  find_ways(masks, tree.depth, right, std::make_integer_sequence<int, static_cast<int>(kMostMaskDepth)>{});
  numbers_of_ways(right, tree.depth, leaves);
}

template <bool Missing, class Code>
void walk_leaves(const CodedTree& tree, const Code* codes, std::uint16_t* leaves) {
  constexpr std::size_t kTogether = 8;  // each waits for its next node
  constexpr int kSteps = 4;             // between looks whether all have arrived
  for (std::size_t row = 0; row < kBlockRows; row += kTogether) {
    const WalkNode* node[kTogether];
    for (std::size_t k = 0; k < kTogether; ++k) node[k] = tree.walk;
    std::int32_t open;
    do {
      for (int step = 0; step < kSteps; ++step)
        for (std::size_t k = 0; k < kTogether; ++k) {
          const std::int32_t code = column_of<Missing>(*node[k], codes + row + k)[0];
          node[k] += node[k]->left + (is_right_of(code, node[k]->cut) ? 1 : 0);
        }
      open = 0;
      for (std::size_t k = 0; k < kTogether; ++k) open |= node[k]->left;
    } while (open != 0);
    for (std::size_t k = 0; k < kTogether; ++k) leaves[row + k] = tree.walk_leaf[node[k] - tree.walk];
  }
}

template <bool Missing, class Code>
void find_leaves(const CodedTree& tree, const Code* codes, Code* slots, std::uint16_t* leaves) {
  if (tree.mask != nullptr)
    mask_leaves<Missing>(tree, codes, masks_of(slots), leaves);
  else if (tree.walk != nullptr)
    walk_leaves<Missing>(tree, codes, leaves);
  else if (tree.n_select > 0)
    select_leaves<Missing>(tree, codes, slots, leaves);
  else
    for (std::size_t i = 0; i < kBlockRows; ++i) leaves[i] = 0;
}

void find_leaves_any(const CodedTree& tree, const CodedBlock& block, void* slots, std::uint16_t* leaves) {
  if (block.wide) {
    const auto* codes = static_cast<const std::int16_t*>(block.codes);
    auto* of_width = static_cast<std::int16_t*>(slots);
    return block.missing ? find_leaves<true>(tree, codes, of_width, leaves)
                         : find_leaves<false>(tree, codes, of_width, leaves);
  }
  const auto* codes = static_cast<const std::int8_t*>(block.codes);
  auto* of_width = static_cast<std::int8_t*>(slots);
  return block.missing ? find_leaves<true>(tree, codes, of_width, leaves)
                       : find_leaves<false>(tree, codes, of_width, leaves);
}

template <class Code>
void fill_slots(Code* slots) {
  for (std::size_t leaf = 0; leaf < kMostSelectLeaves; ++leaf)
    for (std::size_t i = 0; i < kBlockRows; ++i) slots[leaf * kBlockRows + i] = static_cast<Code>(leaf);
  for (std::size_t i = 0; i < std::size_t{1} << kMostMaskDepth; ++i) masks_of(slots)[i] = 0;
}

void prepare_slots(bool wide, void* slots) {
  if (wide)
    fill_slots(static_cast<std::int16_t*>(slots));
  else
    fill_slots(static_cast<std::int8_t*>(slots));
}

// --- sums ---

// Vectors of outputs whose sums are kept in registers over all trees. The last one may begin before the end of the one
// before it: both then add to the same outputs, but of the last only those are kept that the others do not have.
struct Columns {
  std::size_t first;
  std::size_t last;
};

template <int Lanes>
inline Vector<double, Lanes> as_doubles(const float* from) {
#if defined(__AVX512BW__)  // for which compilers convert halves of a vector one after the other
  if constexpr (Lanes == 8) return reinterpret_cast<Vector<double, 8>>(_mm512_cvtps_pd(_mm256_loadu_ps(from)));
#endif
  return __builtin_convertvector((load<Vector<float, Lanes>>(from)), Vector<double, Lanes>);
}

template <int Lanes, int N, int R>
inline void add_rows(const LeafBlock& block, std::size_t row, const Columns& columns) {
  using D = Vector<double, Lanes>;
  const auto column = [&](int n) { return n + 1 < N ? columns.first + n * Lanes : columns.last; };
  D sum[R][N];
  double* scores = block.scores + row * block.stride + block.trees[0].output;
  for (int r = 0; r < R; ++r)
    for (int n = 0; n < N; ++n) sum[r][n] = load<D>(scores + r * block.stride + column(n));
  const std::uint16_t* leaves = block.leaves + row;
  [[maybe_unused]] const std::size_t ahead = row + 1 < kBlockRows ? 1 : 0;
  for (const CodedTree *tree = block.trees, *end = tree + block.n_trees; tree != end; ++tree, leaves += kBlockRows)
    for (int r = 0; r < R; ++r) {
      const float* of_leaf = tree->values + tree->leaf_begin[leaves[r]];
      if constexpr (R == 1 && N > 4) {  // a leaf of several cache lines: those of the next row are fetched meanwhile
        const float* next = tree->values + tree->leaf_begin[leaves[ahead]] + columns.first;
        for (int line = 0; line < N * Lanes; line += 16) __builtin_prefetch(next + line);
      }
      for (int n = 0; n < N; ++n) sum[r][n] += as_doubles<Lanes>(of_leaf + column(n));
    }
  for (int r = 0; r < R; ++r)
    for (int n = N; n-- > 0;) store(scores + r * block.stride + column(n), sum[r][n]);
}

// Rows that are taken together: enough sums that an addition need not wait for the one before it.
constexpr int rows_together(int n) { return n > 4 ? 1 : n > 2 ? 2 : n > 1 ? 4 : 8; }

template <int Lanes, int N>
void add_columns(const LeafBlock& block, const Columns& columns) {
  constexpr int R = rows_together(N);
  std::size_t row = 0;
  for (; row + R <= block.n_rows; row += R) add_rows<Lanes, N, R>(block, row, columns);
  for (; row < block.n_rows; ++row) add_rows<Lanes, N, 1>(block, row, columns);
}

template <int Lanes, int N>
void add_vectors(const LeafBlock& block, std::size_t n, const Columns& columns) {
  if (n == N) return add_columns<Lanes, N>(block, columns);
  if constexpr (N > 1) add_vectors<Lanes, N - 1>(block, n, columns);
}

// What the registers hold besides the values on the way.
constexpr std::size_t kMostVectors = kVectorBytes == 64 ? 12 : 8;

template <int Lanes>
void add_run(const LeafBlock& block) {
  const std::size_t width = block.trees[0].width;
  if constexpr (Lanes > 1)
    if (width < Lanes) return add_run<Lanes / 2>(block);
  const std::size_t n = (width + Lanes - 1) / Lanes;
  const std::size_t parts = (n + kMostVectors - 1) / kMostVectors;
  for (std::size_t part = 0; part < parts; ++part) {  // of about the same size, so that the last vector is not alone
    const std::size_t begin = n * part / parts, end = n * (part + 1) / parts;
    const std::size_t last = end == n ? width - Lanes : (end - 1) * Lanes;
    add_vectors<Lanes, static_cast<int>(kMostVectors)>(block, end - begin, {begin * Lanes, last});
  }
}

void add_pairs(const LeafBlock& block) {
  const CodedTree& tree = block.trees[0];
  for (std::size_t row = 0; row < block.n_rows; ++row) {
    double* scores = block.scores + row * block.stride + tree.output;
    const std::uint32_t begin = tree.leaf_begin[block.leaves[row]];
    for (std::uint32_t j = begin; j < begin + tree.width; ++j)
      scores[tree.value_output[j]] += static_cast<double>(tree.values[j]);
  }
}

void add_leaves(const LeafBlock& block) {
  for (std::size_t first = 0; first < block.n_trees;) {
    LeafBlock run = block;
    run.trees += first;
    run.leaves += first * kBlockRows;
    run.n_trees = 1;
    if (run.trees[0].value_output != nullptr) {
      add_pairs(run);
    } else {
      while (first + run.n_trees < block.n_trees && run.trees[run.n_trees].output == run.trees[0].output &&
             run.trees[run.n_trees].width == run.trees[0].width)
        ++run.n_trees;
      add_run<kVectorBytes / 8>(run);
    }
    first += run.n_trees;
  }
}

void add_values(const float* values, std::size_t n, double* scores) {
  for (std::size_t j = 0; j < n; ++j) scores[j] += static_cast<double>(values[j]);
}

template <class Value>
bool any_infinite(const Value* values, std::size_t n) {
  using Integer = typename SameSize<Value>::Integer;
  constexpr Value kInfinity = static_cast<Value>(__builtin_inf());
  Integer found = 0;
  for (std::size_t i = 0; i < n; ++i) found |= values[i] == kInfinity || values[i] == -kInfinity ? 1 : 0;
  return found != 0;
}

}  // namespace

extern const PredictKernels kPredictKernels;
const PredictKernels kPredictKernels = {kVectorBytes,         kHasMasks,     encode_any<float>, encode_any<double>,
                                        find_leaves_any,      prepare_slots, add_leaves,        any_infinite<float>,
                                        any_infinite<double>, add_values};

}  // namespace POLYLEAF_ISA
}  // namespace polyleaf
