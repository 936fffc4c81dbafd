// A table as NumPy handed it over: any real dtype, any strides, read in strips of one column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace polyleaf {

enum class DType : std::uint8_t { f32, f64, i8, i16, i32, i64, u8, u16, u32, u64 };

struct MatrixView {
  const char* data = nullptr;
  DType dtype = DType::f64;
  std::size_t n_rows = 0;
  std::size_t n_columns = 0;
  std::ptrdiff_t row_stride = 0;     // bytes
  std::ptrdiff_t column_stride = 0;  // bytes

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

}  // namespace polyleaf
