// What the losses of classes and labels predict.
#pragma once

#include <cstddef>

namespace polyleaf {

// Probabilities of classes that exclude each other.
void softmax_probabilities(const double* raw, std::size_t n_rows, int n_outputs, double* out, int n_threads);

// Probabilities of labels.
void logistic_probabilities(const double* raw, std::size_t n_rows, int n_outputs, double* out, int n_threads);

}  // namespace polyleaf
