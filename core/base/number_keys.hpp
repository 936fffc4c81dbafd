// Numbers as unsigned integers in the same order, which can be sorted and searched digit by digit.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace polyleaf {

template <class Real>
using KeyOf = std::conditional_t<sizeof(Real) == 4, std::uint32_t, std::uint64_t>;

template <class Real>
KeyOf<Real> key_of(Real value) {
  using Key = KeyOf<Real>;
  value += Real{0};  // -0.0 becomes 0.0
  Key bits;
  std::memcpy(&bits, &value, sizeof bits);
  constexpr int kSign = 8 * sizeof(Key) - 1;
  return bits ^ ((Key{0} - (bits >> kSign)) | (Key{1} << kSign));
}

template <class Real>
double value_of(KeyOf<Real> key) {
  using Key = KeyOf<Real>;
  constexpr Key kSign = Key{1} << (8 * sizeof(Key) - 1);
  const Key bits = (key & kSign) != 0 ? key & ~kSign : ~key;
  Real value;
  std::memcpy(&value, &bits, sizeof value);
  return static_cast<double>(value);
}

}  // namespace polyleaf
