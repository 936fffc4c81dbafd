// One tree from one round's gradients.
#pragma once

#include <cstdint>
#include <vector>

#include "base/buffer.hpp"
#include "growth/feature_sample.hpp"
#include "growth/grown_tree.hpp"
#include "quantize/payload.hpp"
#include "rules/scoring.hpp"
#include "search/joint_score.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

// Where the full Hessian is used instead of its diagonal.
enum class ExactHessian : std::uint8_t { kNowhere, kLeaves, kEverywhere };

struct GrowSettings {
  Rules rules{};
  SparseLeaves sparse;
  ExactHessian exact = ExactHessian::kNowhere;
  double learning_rate = 1.0;
  std::size_t histogram_bytes = 0;  // memory for histograms kept for subtraction
  int n_threads = 1;
  bool output_gains = false;  // whether gains are shared out to the outputs
};

// Which leaf values are renewed from the residuals once the structure stands (renew_leaves.hpp).
struct Renewal {
  const double* level = nullptr;  // per output: the quantile of the residuals; NaN: not renewed. Null: none is
  const double* y = nullptr;      // targets of all rows
  std::size_t y_stride = 0;
  const std::int32_t* column = nullptr;  // per output: its target's column of y
  const double* cell_weight = nullptr;   // rows x outputs, instead of the rows' weights; may be null
  std::size_t cell_stride = 0;
};

struct GrowTask {
  const BinnedMatrix* matrix = nullptr;
  Gradients gradients;           // what leaf values are made of
  const double* unit = nullptr;  // per output: values and gradients are multiples of it
  // What splits are found on: the same gradients, or a sketch of them, with the weights of a sample.
  Gradients structure;
  const double* gain_weight = nullptr;     // per output of the structure: its share in the split score
  const double* structure_unit = nullptr;  // per output of the structure
  const std::uint32_t* rows = nullptr;     // the sample to grow from, ascending; null: all rows
  std::size_t n_rows = 0;
  bool all_rows_in_leaves = false;  // leaf values are made of all rows, not of the sample only
  FeatureSample features;
  const std::int8_t* monotone = nullptr;  // signs of monotone constraints, features x outputs; null: none
  double* raw = nullptr;                  // predictions of all rows, to which the tree is added
  std::size_t raw_stride = 0;
  std::uint32_t* leaf_of_row = nullptr;  // where the leaf of each row is written
  Renewal renewal;                       // needs `raw`
};

// Grows trees on one binned table; keeps its work space from round to round.
class TreeGrower {
 public:
  GrownTree grow(const GrowTask& task, const GrowSettings& settings);

 private:
  Payload payload_;
  Buffer<std::int32_t> histograms_;
  std::vector<std::uint32_t> rows_, spare_;
};

}  // namespace polyleaf
