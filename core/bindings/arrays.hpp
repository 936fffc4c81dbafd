// Arrays as Python passes them, and the checks that memory safety needs; all others are made in Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/matrix_view.hpp"
#include "rules/curvature.hpp"
#include "table/binned_matrix.hpp"

namespace polyleaf {

namespace nb = nanobind;
using namespace nb::literals;

using Table = nb::ndarray<nb::ro, nb::device::cpu>;
template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using RowMatrix = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;  // rows may be apart
template <class T>
using OutVector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using OutMatrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

inline void expect(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

inline MatrixView view_of(const Table& table) {
  if (table.ndim() != 2) throw std::invalid_argument("expected a table of two dimensions");
  MatrixView view;
  const nb::dlpack::dtype dtype = table.dtype();
  const auto is = [&](nb::dlpack::dtype_code code, int bits) {
    return dtype.code == static_cast<std::uint8_t>(code) && dtype.bits == bits && dtype.lanes == 1;
  };
  using Code = nb::dlpack::dtype_code;
  if (is(Code::Float, 32))
    view.dtype = DType::f32;
  else if (is(Code::Float, 64))
    view.dtype = DType::f64;
  else if (is(Code::Int, 8))
    view.dtype = DType::i8;
  else if (is(Code::Int, 16))
    view.dtype = DType::i16;
  else if (is(Code::Int, 32))
    view.dtype = DType::i32;
  else if (is(Code::Int, 64))
    view.dtype = DType::i64;
  else if (is(Code::UInt, 8) || is(Code::Bool, 8))
    view.dtype = DType::u8;
  else if (is(Code::UInt, 16))
    view.dtype = DType::u16;
  else if (is(Code::UInt, 32))
    view.dtype = DType::u32;
  else if (is(Code::UInt, 64))
    view.dtype = DType::u64;
  else
    throw std::invalid_argument("the table's dtype is not one of bool, integers, float32, float64");
  const auto size = static_cast<std::ptrdiff_t>(dtype.bits / 8);
  view.data = static_cast<const char*>(table.data());
  view.n_rows = table.shape(0);
  view.n_columns = table.shape(1);
  view.row_stride = table.stride(0) * size;
  view.column_stride = table.stride(1) * size;
  return view;
}

// Hands a vector over to NumPy without a copy.
template <class T>
nb::object to_numpy(std::vector<T>&& values, std::size_t columns = 0) {
  auto owned = std::make_unique<std::vector<T>>(std::move(values));
  T* data = owned->data();
  const std::size_t size = owned->size();
  nb::capsule owner(owned.release(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  if (columns == 0) return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, owner));
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<2>>(data, {size / columns, columns}, owner));
}

template <class T>
const T* data_or_null(const std::optional<Vector<T>>& vector, std::size_t size, const char* message) {
  if (!vector) return nullptr;
  expect(vector->shape(0) == size, message);
  return vector->data();
}

// `may_be_none`: where other shards may have some.
inline const std::uint32_t* checked_rows(const Vector<std::uint32_t>& rows, const BinnedMatrix& matrix,
                                         bool may_be_none = false) {
  expect(rows.shape(0) > 0 || may_be_none, "no rows");
  for (std::size_t i = 0; i < rows.shape(0); ++i) expect(rows.data()[i] < matrix.n_rows, "a row is out of range");
  return rows.data();
}

// An array of this many rows, whose `n_outputs` numbers stand side by side.
template <class Array>
void expect_rows(const Array& array, std::size_t n_rows, std::size_t n_outputs, const char* name) {
  const bool side_by_side = n_rows == 0 || n_outputs == 1 || array.stride(1) == 1;
  if (array.shape(0) == n_rows && array.shape(1) == n_outputs && side_by_side) return;
  throw std::invalid_argument(std::string(name) + ": rows x outputs, outputs side by side");
}

inline Term term_of(const std::string& name) {
  for (std::size_t i = 0; i < std::size(kTermNames); ++i)
    if (name == kTermNames[i]) return static_cast<Term>(i);
  throw std::invalid_argument("unknown term");
}

}  // namespace polyleaf
