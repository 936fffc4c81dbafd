#include "gradients/score_pass.hpp"

#include <algorithm>

#include "gradients/row_blocks.hpp"
#include "kernels/leaf.hpp"

namespace polyleaf {

void Sketch::fill(const FloatRows& rows) const {
  if (columns.count > 0) gradient_kernels().project(rows, columns, mixtures);
  if (share != nullptr) gradient_kernels().weighted_sums(rows, share, term, sums);
}

void fill_sketch(const Sketch& sketch, const FloatRows& all_rows, int n_threads) {
  const std::size_t n_cells = all_rows.end * static_cast<std::size_t>(all_rows.n);
  over_row_blocks(all_rows.end, all_rows.n, n_cells < kParallelWork ? 1 : n_threads,
                  [&](std::size_t begin, std::size_t end) {
                    FloatRows rows = all_rows;
                    rows.begin = begin;
                    rows.end = end;
                    sketch.fill(rows);
                  });
}

void all_gradients(const Formula& formula, const ScoreBlock& all_rows, int n_threads) {
  over_row_blocks(all_rows.end, all_rows.n_outputs, n_threads, [&](std::size_t begin, std::size_t end) {
    ScoreBlock block = all_rows;
    block.begin = begin;
    block.end = end;
    formula.gradients(block);
  });
}

void ScorePass::add(const PendingTree& tree) {
  settle();
  pending_ = tree;
}

void ScorePass::settle() {
  if (pending_.leaf == nullptr) return;
  over_row_blocks(n_rows_, n_outputs_, n_threads_,
                  [&](std::size_t begin, std::size_t end) { after_tree(begin, end, [](std::size_t, std::size_t) {}); });
  pending_ = {};
}

void ScorePass::sweep(const Formula& formula, float* gradient, float* hessian, const Sketch* sketch) {
  over_row_blocks(n_rows_, n_outputs_, n_threads_, [&](std::size_t first, std::size_t last) {
    after_tree(first, last, [&](std::size_t begin, std::size_t end) {
      formula.gradients({scores_, n_outputs_, begin, end, gradient, hessian});
    });
    if (sketch != nullptr) sketch->fill({gradient, static_cast<std::size_t>(n_outputs_), n_outputs_, first, last});
  });
  pending_ = {};
}

// Runs body(begin, end) on a few rows at a time, to which the pending tree is added first: they then are in the
// first-level cache, which holds them besides the values of leaves.
template <class Body>
void ScorePass::after_tree(std::size_t begin, std::size_t end, Body&& body) const {
  constexpr std::size_t kNearCells = std::size_t{1} << 10;
  const PendingTree& tree = pending_;
  if (tree.leaf == nullptr) return body(begin, end);
  const std::size_t step = std::max<std::size_t>(1, kNearCells / static_cast<std::size_t>(n_outputs_));
  for (std::size_t row = begin; row < end; row += step) {
    const std::size_t next = std::min(end, row + step);
    leaf_kernels().add_leaves(tree.leaf, tree.values, tree.unit, row, next, n_outputs_, scores_);
    body(row, next);
  }
}

}  // namespace polyleaf
