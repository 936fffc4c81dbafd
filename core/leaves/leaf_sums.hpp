// What leaf values are made of: sums over the rows of each leaf, which no order of the rows changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/order_free.hpp"
#include "base/shard.hpp"
#include "gradients/gradient_arrays.hpp"
#include "growth/leaf_rows.hpp"
#include "quantize/bounds.hpp"

namespace polyleaf {

class LeafSums {
 public:
  // `bounds` are those of the gradients.
  LeafSums(const Gradients& gradients, const GradientBounds& bounds, const Shard& shard);

  // Over the rows of all shards, leaf by leaf: gradients (d), Hessians (d; 0 if they are the weight), weight. Gradients
  // that are not stored are made block by block of rows, in the order of the rows: their scores may lie in a file.
  std::vector<double> sum(const RowsInLeaves& places, int n_threads) const;
  // The lower triangle of the full Hessian of one leaf, of the rows here.
  std::vector<double> full_hessian(const RowsInLeaves& places, const LeafRows& leaf) const;
  std::size_t stride() const { return 2 * static_cast<std::size_t>(in_.n_outputs) + 1; }

 private:
  struct Parts;
  struct Block;
  void add_rows(const Gradients& from, const std::uint32_t* rows, std::size_t n_rows, Parts& parts,
                std::size_t first) const;
  Parts sum_by_leaves(const RowsInLeaves& places, int n_threads) const;
  Parts sum_by_blocks(const RowsInLeaves& places, int n_threads) const;

  const Gradients& in_;
  const Shard& shard_;
  SumGrids gradient_grids_, hessian_grids_;
  SumGrid weight_grid_;
  bool in_order_;  // of the rows: plain sums
};

}  // namespace polyleaf
