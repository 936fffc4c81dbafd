// The score pass: scores of the training rows, the tree not yet added to them, and one sweep that adds it, makes
// gradients and sketches these, each row while it is in the cache.
//
//   row 0 ................ a block of rows ................ row n
//           | a few rows: + tree -> gradients |  ...  | then the block's sketch
//
// Of 500 classes, one sweep saves 7 % of the time of three.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gradients/formula.hpp"
#include "gradients/made_gradients.hpp"

namespace polyleaf {

// A tree that is added to the scores of its rows by the next sweep.
struct PendingTree {
  const std::uint32_t* leaf = nullptr;  // of each row; null: there is no such tree
  const float* values = nullptr;        // leaves x outputs
  const double* unit = nullptr;         // per output: what the values are multiples of
};

// Sums of each row's gradients.
struct Sketch {
  Columns columns;                // coefficients, mixture by mixture; of none there are no mixtures
  float* mixtures = nullptr;      // rows x mixtures
  const double* share = nullptr;  // per output: weights of the sums of terms; null: no such sums
  Term term = Term::kItself;
  double* sums = nullptr;  // per row

  void fill(const FloatRows& rows) const;
};

// Sketches all rows of an array.
void fill_sketch(const Sketch& sketch, const FloatRows& all_rows, int n_threads);

// Gradients of all rows: a sweep with nothing to add or sketch.
void all_gradients(const Formula& formula, const ScoreBlock& all_rows, int n_threads);

class ScorePass {
 public:
  // The scores are rows x outputs, and stay where they are.
  ScorePass(double* scores, std::size_t n_rows, int n_outputs, int n_threads)
      : scores_(scores), n_rows_(n_rows), n_outputs_(n_outputs), n_threads_(n_threads) {}

  std::size_t n_rows() const { return n_rows_; }
  int n_outputs() const { return n_outputs_; }

  // Adds a tree to the scores, with the next sweep or when the scores are settled.
  void add(const PendingTree& tree);

  // Adds what is pending.
  void settle();

  // Adds what is pending; makes gradients, the Hessian if there is an array for it, and the sketch if there is one.
  void sweep(const Formula& formula, float* gradient, float* hessian, const Sketch* sketch);

  // The same for gradients of these scores that are not stored: their sketches, and, where `magnitudes` are asked for,
  // the largest ones that `weight`, of each row or null, makes of them. A sketch may be null.
  void sweep(MadeGradients& made, const Sketch* of_gradient, const Sketch* of_hessian, const double* weight,
             bool magnitudes);

 private:
  template <class Body>
  void after_tree(std::size_t begin, std::size_t end, Body&& body) const;

  double* scores_;
  std::size_t n_rows_;
  int n_outputs_;
  int n_threads_;
  PendingTree pending_;
};

}  // namespace polyleaf
