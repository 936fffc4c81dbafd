// A table as NumPy handed it over: any real dtype, any strides, read in strips of one column or in blocks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

namespace polyleaf {

enum class DType : std::uint8_t { f32, f64, i8, i16, i32, i64, u8, u16, u32, u64 };

struct MatrixView {
  const char* data = nullptr;
  DType dtype = DType::f64;
  std::size_t n_rows = 0;
  std::size_t n_columns = 0;
  std::ptrdiff_t row_stride = 0;     // bytes
  std::ptrdiff_t column_stride = 0;  // bytes
  std::size_t first_column = 0;      // where a block of columns begins in its table: for errors

  const char* at(std::size_t row, std::size_t column) const {
    return data + static_cast<std::ptrdiff_t>(row) * row_stride + static_cast<std::ptrdiff_t>(column) * column_stride;
  }
};

// Calls visit(T{}) with a value of the element type of the view.
template <class Visit>
auto with_dtype(DType dtype, Visit&& visit) {
  switch (dtype) {
    case DType::f32:
      return visit(float{});
    case DType::i8:
      return visit(std::int8_t{});
    case DType::i16:
      return visit(std::int16_t{});
    case DType::i32:
      return visit(std::int32_t{});
    case DType::i64:
      return visit(std::int64_t{});
    case DType::u8:
      return visit(std::uint8_t{});
    case DType::u16:
      return visit(std::uint16_t{});
    case DType::u32:
      return visit(std::uint32_t{});
    case DType::u64:
      return visit(std::uint64_t{});
    case DType::f64:
      break;
  }
  return visit(double{});
}

// Reads rows [row, row + count) of one column as float64, `step` doubles apart.
inline void load_strip(const MatrixView& x, std::size_t row, std::size_t count, std::size_t column, double* out,
                       std::size_t step = 1) {
  with_dtype(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const char* source = x.at(row, column);
    for (std::size_t i = 0; i < count; ++i, source += x.row_stride) {
      T value;  // NumPy arrays need not be aligned
      std::memcpy(&value, source, sizeof value);
      out[i * step] = static_cast<double>(value);
    }
  });
}

// Calls visit with a value of the smallest floating-point type that holds every number of the dtype, or the float64
// nearest to it.
template <class Visit>
auto with_real(DType dtype, Visit&& visit) {
  return with_dtype(dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (sizeof(T) < 4 || std::is_same_v<T, float>)
      return visit(float{});
    else
      return visit(double{});
  });
}

// Rows and columns of a block that are read together: 64 bytes of float32 either way.
constexpr std::size_t kBlockEdge = 16;

// Reads rows [row, row + n_rows) of columns [column, column + n_columns), column by column: out[c * step + r].
// Each line of memory is read once, whichever of rows and columns lies side by side.
template <class Real>
void load_block(const MatrixView& x, std::size_t row, std::size_t n_rows, std::size_t column, std::size_t n_columns,
                Real* out, std::size_t step) {
  with_dtype(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto read = [](const char* source) {
      T value;  // NumPy arrays need not be aligned
      std::memcpy(&value, source, sizeof value);
      return static_cast<Real>(value);
    };
    if (std::abs(x.row_stride) <= std::abs(x.column_stride)) {
      for (std::size_t c = 0; c < n_columns; ++c) {
        const char* source = x.at(row, column + c);
        for (std::size_t r = 0; r < n_rows; ++r, source += x.row_stride) out[c * step + r] = read(source);
      }
      return;
    }
    Real corner[kBlockEdge][kBlockEdge];  // turned here, so that far writes are whole lines
    for (std::size_t r0 = 0; r0 < n_rows; r0 += kBlockEdge) {
      const std::size_t rows = std::min(kBlockEdge, n_rows - r0);
      for (std::size_t c0 = 0; c0 < n_columns; c0 += kBlockEdge) {
        const std::size_t columns = std::min(kBlockEdge, n_columns - c0);
        for (std::size_t r = 0; r < rows; ++r) {
          const char* source = x.at(row + r0 + r, column + c0);
          if (r0 + r + kBlockEdge < n_rows) __builtin_prefetch(x.at(row + r0 + r + kBlockEdge, column + c0));
          if (columns == kBlockEdge && x.column_stride == sizeof(T)) {
            for (std::size_t c = 0; c < kBlockEdge; ++c) corner[c][r] = read(source + c * sizeof(T));
          } else {
            for (std::size_t c = 0; c < columns; ++c, source += x.column_stride) corner[c][r] = read(source);
          }
        }
        for (std::size_t c = 0; c < columns; ++c) {
          Real* to = out + (c0 + c) * step + r0;
          if (rows == kBlockEdge)
            std::memcpy(to, corner[c], sizeof corner[c]);
          else
            std::copy(corner[c], corner[c] + rows, to);
        }
      }
    }
  });
}

}  // namespace polyleaf
