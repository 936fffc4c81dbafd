// Looks for infinities in a table.
#pragma once

#include "base/matrix_view.hpp"

namespace polyleaf {

bool has_infinity(const MatrixView& x, int n_threads);

}  // namespace polyleaf
