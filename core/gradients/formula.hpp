// What a loss is to the score pass: gradient and Hessian of some rows, from their scores and targets.
#pragma once

#include <cstddef>

#include "kernels/gradient.hpp"

namespace polyleaf {

// A formula knows the targets of all rows, and nothing of trees, sketches and threads.
class Formula {
 public:
  Formula(std::size_t n_rows, int n_outputs) : n_rows_(n_rows), n_outputs_(n_outputs) {}
  virtual ~Formula() = default;

  std::size_t n_rows() const { return n_rows_; }
  int n_outputs() const { return n_outputs_; }

  // Whether the Hessian is more than 1 everywhere; if it is not, none is ever asked for.
  virtual bool has_hessian() const { return true; }

  virtual void gradients(const ScoreBlock& block) const = 0;

 protected:
  // Runs body(row, output, cell, place) over the cells of a block: `cell` is their number in the arrays of all rows,
  // `place` that in the arrays of gradients.
  template <class Body>
  static void over_cells(const ScoreBlock& block, Body&& body) {
    const auto d = static_cast<std::size_t>(block.n_outputs);
    for (std::size_t row = block.begin; row < block.end; ++row) {
      const std::size_t cell = row * d, place = block.place(row);
      for (std::size_t j = 0; j < d; ++j) body(row, j, cell + j, place + j);
    }
  }

 private:
  std::size_t n_rows_;
  int n_outputs_;
};

}  // namespace polyleaf
