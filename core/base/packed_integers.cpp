#include "base/packed_integers.hpp"

#include <algorithm>
#include <cstring>

namespace polyleaf {
namespace {

constexpr std::size_t kLanes = 32;

std::size_t run_of(std::size_t n) { return (n + kLanes - 1) / kLanes; }

std::uint32_t folded(std::int32_t number) {
  return (static_cast<std::uint32_t>(number) << 1) ^ static_cast<std::uint32_t>(number >> 31);
}

std::int32_t unfolded(std::uint32_t word) { return static_cast<std::int32_t>((word >> 1) ^ (0u - (word & 1u))); }

}  // namespace

int packed_width(const std::int32_t* numbers, std::size_t n) {
  std::uint32_t all = 0;
  for (std::size_t i = 0; i < n; ++i) all |= folded(numbers[i]);
  int width = 0;
  while (width < kPlainWidth && (all >> width) != 0) ++width;
  // What would shrink by less than a quarter takes longer to pack than to send.
  return 4 * static_cast<std::size_t>(width) * run_of(n) <= 3 * n ? width : kPlainWidth;
}

std::size_t packed_words(std::size_t n, int width) {
  return width == kPlainWidth ? n : static_cast<std::size_t>(width) * run_of(n);
}

void pack(const std::int32_t* numbers, std::size_t n, int width, std::uint32_t* words) {
  if (width == 0) return;
  if (width == kPlainWidth) {
    std::memcpy(words, numbers, n * sizeof *words);
    return;
  }
  const std::size_t run = run_of(n);
  std::fill_n(words, packed_words(n, width), 0u);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const std::size_t begin = lane * run;
    if (begin >= n) break;
    const std::size_t count = std::min(run, n - begin);
    const auto bit = static_cast<int>(lane) * width;
    std::uint32_t* word = words + static_cast<std::size_t>(bit / 32) * run;
    const int shift = bit % 32;
    for (std::size_t i = 0; i < count; ++i) word[i] |= folded(numbers[begin + i]) << shift;
    if (shift + width <= 32) continue;
    word += run;
    for (std::size_t i = 0; i < count; ++i) word[i] |= folded(numbers[begin + i]) >> (32 - shift);
  }
}

void unpack(const std::uint32_t* words, std::size_t n, int width, std::int32_t* numbers) {
  if (width == 0) {
    std::fill_n(numbers, n, 0);
    return;
  }
  if (width == kPlainWidth) {
    std::memcpy(numbers, words, n * sizeof *words);
    return;
  }
  const std::size_t run = run_of(n);
  const std::uint32_t mask = (1u << width) - 1u;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const std::size_t begin = lane * run;
    if (begin >= n) break;
    const std::size_t count = std::min(run, n - begin);
    const auto bit = static_cast<int>(lane) * width;
    const std::uint32_t* word = words + static_cast<std::size_t>(bit / 32) * run;
    const int shift = bit % 32;
    if (shift + width <= 32) {
      for (std::size_t i = 0; i < count; ++i) numbers[begin + i] = unfolded((word[i] >> shift) & mask);
      continue;
    }
    const std::uint32_t* next = word + run;
    for (std::size_t i = 0; i < count; ++i)
      numbers[begin + i] = unfolded(((word[i] >> shift) | (next[i] << (32 - shift))) & mask);
  }
}

}  // namespace polyleaf
