#include "table/infinity.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "base/buffer.hpp"
#include "base/threads.hpp"
#include "kernels/predict.hpp"

namespace polyleaf {
namespace {

constexpr std::size_t kTaskValues = 65536;  // looked at by one thread before it takes more

template <class Value>
bool any_infinite(const MatrixView& x, int n_threads) {
  const auto size = static_cast<std::ptrdiff_t>(sizeof(Value));
  const PredictKernels& k = predict_kernels();
  const auto look = [&](const Value* values, std::size_t n) {
    if constexpr (sizeof(Value) == sizeof(float))
      return k.any_infinite_float(values, n);
    else
      return k.any_infinite_double(values, n);
  };
  // Lines of neighbours: the rows, or the columns of a table in Fortran's order.
  std::size_t n_lines = x.n_rows, length = x.n_columns;
  std::ptrdiff_t line_stride = x.row_stride, step = x.column_stride;
  if (x.row_stride == size && x.n_rows > 1) {
    std::swap(n_lines, length);
    std::swap(line_stride, step);
  }
  const bool neighbours = (step == size || length == 1) && line_stride % size == 0 &&
                          reinterpret_cast<std::uintptr_t>(x.data) % static_cast<std::uintptr_t>(size) == 0;
  const std::size_t lines = std::max<std::size_t>(1, kTaskValues / std::max<std::size_t>(1, length));
  if (x.n_rows * x.n_columns < kParallelWork) n_threads = 1;
  std::atomic<bool> found{false};
  parallel_for(n_threads, (n_lines + lines - 1) / lines, [&](std::size_t task, int) {
    const std::size_t begin = task * lines, end = std::min(n_lines, begin + lines);
    Buffer<Value> copy(neighbours ? 0 : length);
    for (std::size_t line = begin; line < end && !found.load(std::memory_order_relaxed); ++line) {
      const char* first = x.data + static_cast<std::ptrdiff_t>(line) * line_stride;
      if (neighbours && line_stride == size * static_cast<std::ptrdiff_t>(length)) {
        if (look(reinterpret_cast<const Value*>(first), (end - line) * length)) found = true;
        return;
      }
      if (!neighbours)
        for (std::size_t i = 0; i < length; ++i)
          std::memcpy(&copy[i], first + static_cast<std::ptrdiff_t>(i) * step, sizeof(Value));
      if (look(neighbours ? reinterpret_cast<const Value*>(first) : copy.data(), length)) found = true;
    }
  });
  return found;
}

}  // namespace

bool has_infinity(const MatrixView& x, int n_threads) {
  if (x.dtype == DType::f32) return any_infinite<float>(x, n_threads);
  if (x.dtype == DType::f64) return any_infinite<double>(x, n_threads);
  return false;
}

}  // namespace polyleaf
