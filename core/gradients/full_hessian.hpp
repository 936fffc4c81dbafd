// The exact Hessian: a symmetric matrix per row, kept as its lower triangle, row by row.
#pragma once

#include <cstddef>
#include <cstdint>

namespace polyleaf {

// Entries of the lower triangle of a symmetric matrix.
constexpr std::size_t triangle(std::size_t n) { return n * (n + 1) / 2; }

// diag(p) - p p^T of the softmax, from its gradient p - onehot(label).
void softmax_hessian(const float* gradient, std::int32_t label, int n_outputs, double* lower);

// Factors A = L L^T in place (both lower triangles). False where A is not positive definite.
bool cholesky(double* lower, int n);

// Solves L z = b in place; the squared length of z is then b^T A^-1 b (eq. 14).
void solve_lower(const double* lower, int n, double* b);

// Solves L^T x = z in place; after solve_lower this gives A^-1 b (eq. 13).
void solve_upper(const double* lower, int n, double* z);

}  // namespace polyleaf
