// The growth contract: what is to be grown, by which settings, and what grows it.
//
//   GrowTask       one tree: its table, gradients, rows, features, constraints, and what becomes of it
//   GrowSettings   the same for every tree of a training
//   Grower         takes both, returns the tree: dense/ and label_sparse/ have one each
//
// The GPU's grower has the same contract in Python (polyleaf/growth/contract.py).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/shard.hpp"
#include "gradients/gradient_arrays.hpp"
#include "growth/feature_sample.hpp"
#include "growth/grown_tree.hpp"
#include "rules/scoring.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

// Which outputs a leaf holds.
struct SparseLeaves {
  int k = 0;  // 0: all
  bool restricted = true;
};

// Which Hessian is used: that of each output, one for all outputs of a row (what splits are found on has it then), or
// the whole matrix, in the leaves or in splits as well.
enum class HessianUse : std::uint8_t { kDiagonal, kShared, kExactLeaf, kExact };
// As users name them, in that order.
constexpr const char* kHessianNames[] = {"diagonal", "shared", "exact_leaf", "exact"};

// No limit of depth or leaves.
constexpr int kUnlimited = 1 << 30;

struct GrowSettings {
  Rules rules{kUnlimited, kUnlimited, 1, 0.0, 0.0, 0.0, 0.0};
  SparseLeaves sparse;
  HessianUse hessian = HessianUse::kDiagonal;
  // Memory for histograms kept for subtraction, whatever the number of outputs. A node whose histogram is not kept
  // costs its children a pass over their own rows; the tree is the same to the last bit.
  std::size_t histogram_bytes = std::size_t{256} << 20;
  bool bounded_influence = false;  // of a row in its leaf, where the Hessian is the row's weight (rules/influence.hpp)
  bool packed_sums = false;        // of 20 bits, where they can be (quantize/payload.hpp)
  int n_threads = 1;

  bool exact_splits() const { return hessian == HessianUse::kExact; }
  bool exact_leaves() const { return exact_splits() || hessian == HessianUse::kExactLeaf; }
};

// What leaf values are made of.
struct LeafGradients : Gradients {
  const double* unit = nullptr;  // per output: values and gradients are multiples of it
};

// What splits are found on: the same gradients, or a sketch of them, with the weights of a sample.
struct SplitGradients : Gradients {
  const double* gain_weight = nullptr;  // per output: its share in the split score
  const double* unit = nullptr;         // per output; infinite where L1 regularisation has no meaning
};

// The rows to grow from.
struct RowSample {
  const std::uint32_t* rows = nullptr;  // ascending; null: all
  std::size_t n_rows = 0;
  bool all_rows_in_leaves = false;  // leaf values are made of all rows, not of the sample only
};

// Which leaf values are renewed from the residuals once the structure stands (leaves/renewed.hpp).
struct Renewal {
  const double* level = nullptr;  // per output: the quantile of the residuals; NaN: not renewed. Null: none is
  const double* y = nullptr;      // targets of all rows
  std::size_t y_stride = 0;
  const std::int32_t* column = nullptr;  // per output: its target's column of y
  const double* cell_weight = nullptr;   // rows x outputs, instead of the rows' weights; may be null
  std::size_t cell_stride = 0;
};

// What becomes of the tree; both may be asked for, or neither.
struct Destination {
  double* raw = nullptr;  // predictions of all rows, to which the tree is added
  std::size_t raw_stride = 0;
  std::uint32_t* leaf_of_row = nullptr;  // where the leaf of each row is written
};

struct GrowTask {
  const BinnedMatrix* matrix = nullptr;
  Shard shard;                     // the part of the rows that the table has
  LeafGradients leaf_gradients;    // a grower that has gradients of its own reads the weights alone
  SplitGradients split_gradients;  // the same
  RowSample sample;
  FeatureSample features;
  const std::int8_t* monotone = nullptr;  // signs of monotone constraints, features x outputs; null: none
  Renewal renewal;                        // needs `destination.raw`
  Destination destination;
  double learning_rate = 1.0;  // factor of the leaf values
  bool output_gains = false;   // whether gains are shared out to the outputs

  std::size_t n_rows() const { return sample.rows != nullptr ? sample.n_rows : matrix->n_rows; }
  // Whether leaves are filled with rows that the splits did not see.
  bool gathers_rows() const { return sample.rows != nullptr && sample.all_rows_in_leaves; }
};

class Grower {
 public:
  virtual ~Grower() = default;
  virtual GrownTree grow(const GrowTask& task, const GrowSettings& settings) = 0;
};

}  // namespace polyleaf
