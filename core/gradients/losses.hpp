// Gradients and Hessians of the built-in losses, and what they predict, one pass over rows x outputs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rules/curvature.hpp"

namespace polyleaf {

// A tree that is added to the scores by the next pass over them, row by row before anything else.
struct LeafValues {
  const std::uint32_t* leaf = nullptr;  // of each row; null: there is nothing to add
  const float* values = nullptr;        // leaves x outputs
  const double* unit = nullptr;         // per output: what the values are multiples of
};

// Sums of each row's gradients, to be made while they are in the cache.
struct RowMixtures {
  const float* columns = nullptr;  // coefficients, mixture by mixture (`Kernels::project`); null: there are none
  std::size_t column_stride = 0;
  int n_columns = 0;
  float* out = nullptr;           // rows x mixtures
  const double* share = nullptr;  // per output: weights of the sums of terms; null: these are not wanted
  Term term = Term::kItself;
  double* sums = nullptr;  // per row
};

void mix_rows(const RowMixtures& mixtures, const float* values, std::size_t stride, std::size_t n_rows, int n_outputs,
              int n_threads);

// What a pass over the scores does besides making gradients.
struct OnTheWay {
  LeafValues tree;
  RowMixtures mixtures;
};

void add_leaf_values(const LeafValues& tree, std::size_t n_rows, int n_outputs, double* raw, int n_threads);

// Gradient of 1/2 (raw - y)^2 in multiples of each output's unit; the Hessian is 1.
void squared_error_gradients(const OnTheWay& also, double* raw, const double* y, const double* unit, std::size_t n_rows,
                             int n_outputs, float* gradient, int n_threads);

// A Hessian of null is not wanted.
void softmax_gradients(const OnTheWay& also, double* raw, const std::int32_t* label, Term curvature, std::size_t n_rows,
                       int n_outputs, float* gradient, float* hessian, int n_threads);

void logistic_gradients(const OnTheWay& also, double* raw, const double* y, std::size_t n_rows, int n_outputs,
                        float* gradient, float* hessian, int n_threads);

// Probabilities of classes that exclude each other.
void softmax_probabilities(const double* raw, std::size_t n_rows, int n_outputs, double* out, int n_threads);

// Probabilities of labels.
void logistic_probabilities(const double* raw, std::size_t n_rows, int n_outputs, double* out, int n_threads);

// Gradient of max(1 - raw, 0)^2 / 2 where y is 1, max(raw, 0)^2 / 2 where it is 0.
void clipped_squared_error_gradients(const double* raw, const double* y, std::size_t n_rows, int n_outputs,
                                     float* gradient, int n_threads);

// Gradient of the pinball loss times a factor: `above[j]` where raw is above the target, -`below[j]` where it is below,
// 0 where it is right. `column[j]` is the column of y that output j predicts. The Hessian counts as 1.
void pinball_gradients(const double* raw, const double* y, std::size_t n_targets, const std::int32_t* column,
                       const double* above, const double* below, std::size_t n_rows, int n_outputs, float* gradient,
                       int n_threads);

// Huber's loss, times `factor[j]`: gradient in multiples of `unit[j]`, and the curvature of the parabola that touches
// the loss from above, min(1, delta / |residual|), at most `largest`.
void huber_gradients(const double* raw, const double* y, const double* unit, const double* factor, double delta,
                     double largest, std::size_t n_rows, int n_outputs, float* gradient, float* hessian, int n_threads);

// Deviance of power 1 (Poisson) to 2 (gamma) with log link, of targets in multiples of exp(log_mean[j]). The Hessian is
// the exact one, or more where a row's own Newton step would otherwise go past its target.
void log_link_gradients(const double* raw, const double* y, const double* log_mean, double power, std::size_t n_rows,
                        int n_outputs, float* gradient, float* hessian, int n_threads);

}  // namespace polyleaf
