#include "gradients/score_pass.hpp"

#include <algorithm>

#include "gradients/row_blocks.hpp"
#include "kernels/leaf.hpp"
#include "kernels/sum.hpp"

namespace polyleaf {

void Sketch::fill(const FloatRows& rows) const {
  if (columns.count > 0) gradient_kernels().project(rows, columns, mixtures);
  if (share != nullptr) gradient_kernels().weighted_sums(rows, share, term, sums);
}

void fill_sketch(const Sketch& sketch, const FloatRows& all_rows, int n_threads) {
  const std::size_t n_cells = all_rows.end * static_cast<std::size_t>(all_rows.n);
  over_row_blocks(all_rows.end, all_rows.n, n_cells < kParallelWork ? 1 : n_threads,
                  [&](std::size_t begin, std::size_t end, int) {
                    FloatRows rows = all_rows;
                    rows.begin = begin;
                    rows.end = end;
                    sketch.fill(rows);
                  });
}

void all_gradients(const Formula& formula, const ScoreBlock& all_rows, int n_threads) {
  over_row_blocks(all_rows.end, all_rows.n_outputs, n_threads, [&](std::size_t begin, std::size_t end, int) {
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
  over_row_blocks(n_rows_, n_outputs_, n_threads_, [&](std::size_t begin, std::size_t end, int) {
    after_tree(begin, end, [](std::size_t, std::size_t) {});
  });
  pending_ = {};
}

void ScorePass::sweep(const Formula& formula, float* gradient, float* hessian, const Sketch* sketch) {
  over_row_blocks(n_rows_, n_outputs_, n_threads_, [&](std::size_t first, std::size_t last, int) {
    after_tree(first, last, [&](std::size_t begin, std::size_t end) {
      formula.gradients({scores_, n_outputs_, begin, end, gradient, hessian});
    });
    if (sketch != nullptr) sketch->fill({gradient, static_cast<std::size_t>(n_outputs_), n_outputs_, first, last});
  });
  pending_ = {};
}

namespace {

// Raises the largest magnitudes of a thread by those of some rows that begin with row `first`.
void raise(const std::vector<float>& values, int n_outputs, const double* weight, std::size_t first, std::size_t last,
           std::vector<double>& largest) {
  const auto d = static_cast<std::size_t>(n_outputs);
  sum_kernels().largest_magnitudes({values.data(), d, weight == nullptr ? nullptr : weight + first, n_outputs}, 0,
                                   last - first, largest.data());
}

// The largest of what the threads have seen.
std::vector<double> largest_of(const std::vector<std::vector<double>>& of_threads) {
  std::vector<double> out = of_threads[0];
  for (const std::vector<double>& other : of_threads)
    for (std::size_t j = 0; j < out.size(); ++j) out[j] = std::max(out[j], other[j]);
  return out;
}

}  // namespace

void ScorePass::sweep(MadeGradients& made, const Sketch* of_gradient, const Sketch* of_hessian, const double* weight,
                      bool magnitudes) {
  const auto d = static_cast<std::size_t>(n_outputs_);
  const auto n_threads = static_cast<std::size_t>(std::max(n_threads_, 1));
  const std::size_t size = rows_of_block(n_outputs_) * d;
  const bool with_hessian = made.has_hessian();
  struct Scratch {
    std::vector<float> gradient, hessian;
  };
  std::vector<Scratch> scratch(n_threads);
  std::vector<std::vector<double>> gradient_largest(n_threads, std::vector<double>(magnitudes ? d : 0, 0.0));
  std::vector<std::vector<double>> hessian_largest(n_threads, std::vector<double>(magnitudes && with_hessian ? d : 0));
  over_row_blocks(n_rows_, n_outputs_, n_threads_, [&](std::size_t first, std::size_t last, int member) {
    const auto thread = static_cast<std::size_t>(member);
    Scratch& own = scratch[thread];
    own.gradient.resize(size);
    if (with_hessian) own.hessian.resize(size);
    after_tree(first, last, [&](std::size_t begin, std::size_t end) {
      const std::size_t at = (begin - first) * d;
      made.make(begin, end, own.gradient.data() + at, with_hessian ? own.hessian.data() + at : nullptr);
    });
    if (of_gradient != nullptr) of_gradient->fill({own.gradient.data(), d, n_outputs_, first, last, first});
    if (of_hessian != nullptr) of_hessian->fill({own.hessian.data(), d, n_outputs_, first, last, first});
    if (!magnitudes) return;
    raise(own.gradient, n_outputs_, weight, first, last, gradient_largest[thread]);
    if (with_hessian) raise(own.hessian, n_outputs_, weight, first, last, hessian_largest[thread]);
  });
  made.largest_gradient = largest_of(gradient_largest);
  made.largest_hessian = largest_of(hessian_largest);
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
