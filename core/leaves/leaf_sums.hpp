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
  // `bounds` are those of the gradients. `magnitudes`: of these, too, where the Hessian is the weight.
  LeafSums(const Gradients& gradients, const GradientBounds& bounds, const Shard& shard, bool magnitudes = false);

  // Over the rows of all shards, leaf by leaf: gradients (d), Hessians (d; if they are the weight: 0, or the gradients'
  // magnitudes), weight. Gradients that are not stored are made block by block of rows, in the order of the rows: their
  // scores may lie in a file.
  std::vector<double> sum(const RowsInLeaves& places, int n_threads) const;
  // The largest magnitudes of the gradients, without weights, leaf by leaf (d).
  std::vector<double> largest(const RowsInLeaves& places, int n_threads) const;
  // Gradients within limits (leaves x d), leaf by leaf (d).
  std::vector<double> sum_within(const std::vector<double>& limits, const RowsInLeaves& places, int n_threads) const;
  // The lower triangle of the full Hessian of one leaf, of the rows here.
  std::vector<double> full_hessian(const RowsInLeaves& places, const LeafRows& leaf) const;
  std::size_t stride() const { return 2 * static_cast<std::size_t>(in_.n_outputs) + 1; }

 private:
  struct Parts;
  struct Block;
  // Some rows of a leaf, by their numbers, with what they have of gradients.
  struct SomeRows {
    const Gradients& of;
    const std::uint32_t* rows;
    std::size_t n_rows;
    std::size_t leaf;
  };
  std::vector<double> over_all_shards(Parts parts) const;
  void add_rows(const SomeRows& some, Parts& parts, std::size_t first) const;
  // Of `size` numbers a leaf: take(rows, parts, first) has those of some rows in parts from number `first` on, and
  // join(parts, other, first) puts the numbers of others to them.
  template <class Take, class Join>
  Parts over_rows(const RowsInLeaves& places, int n_threads, std::size_t size, Take&& take, Join&& join) const;
  template <class Take, class Join>
  Parts by_leaves(const RowsInLeaves& places, int n_threads, std::size_t size, Take&& take, Join&& join) const;
  template <class Take, class Join>
  Parts by_blocks(const RowsInLeaves& places, int n_threads, std::size_t size, Take&& take, Join&& join) const;

  const Gradients& in_;
  const Shard& shard_;
  SumGrids gradient_grids_, hessian_grids_;
  SumGrid weight_grid_;
  bool in_order_;  // of the rows: plain sums
  bool magnitudes_;
};

}  // namespace polyleaf
