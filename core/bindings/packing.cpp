#include <cstring>
#include <numeric>
#include <vector>

#include "base/packed_integers.hpp"
#include "base/threads.hpp"
#include "bindings/arrays.hpp"
#include "bindings/rooms.hpp"

namespace polyleaf {
namespace {

constexpr std::size_t up(std::size_t number, std::size_t multiple) {
  return (number + multiple - 1) / multiple * multiple;
}

// Where the words of each slice begin, and where the last ones end; behind a byte a slice with its width.
std::vector<std::size_t> word_begins(const std::vector<std::uint8_t>& widths, std::size_t length) {
  std::vector<std::size_t> begin(1, up(widths.size(), 4) / 4);
  for (const std::uint8_t width : widths) begin.push_back(begin.back() + packed_words(length, width));
  return begin;
}

int threads_for(std::size_t n_numbers, int n_threads) { return n_numbers >= kParallelWork ? n_threads : 1; }

nb::object pack_slices(const Matrix<std::int32_t>& slices, int n_threads) {
  const std::size_t n = slices.shape(0), length = slices.shape(1);
  std::vector<std::uint32_t> words;
  {
    nb::gil_scoped_release release;
    n_threads = threads_for(slices.size(), n_threads);
    std::vector<std::uint8_t> widths(n);
    parallel_for(n_threads, n, [&](std::size_t i, int) {
      widths[i] = static_cast<std::uint8_t>(packed_width(slices.data() + i * length, length));
    });
    const std::vector<std::size_t> begin = word_begins(widths, length);
    words.resize(begin.back());
    if (n > 0) std::memcpy(words.data(), widths.data(), n);
    parallel_for(n_threads, n, [&](std::size_t i, int) {
      pack(slices.data() + i * length, length, widths[i], words.data() + begin[i]);
    });
  }
  return to_numpy(std::move(words));
}

nb::object unpack_slices(const Vector<std::uint8_t>& packed, std::size_t n, std::size_t length, int n_threads) {
  expect(packed.shape(0) % 4 == 0 && packed.shape(0) >= up(n, 4), "packed: another shape");
  std::vector<std::uint8_t> widths(packed.data(), packed.data() + n);
  for (const std::uint8_t width : widths) expect(width <= kPlainWidth, "packed: another shape");
  const std::vector<std::size_t> begin = word_begins(widths, length);
  expect(packed.shape(0) == 4 * begin.back(), "packed: another shape");
  std::vector<std::int32_t> numbers(n * length);
  {
    nb::gil_scoped_release release;
    std::vector<std::uint32_t> copied;  // messages begin anywhere
    const auto* words = reinterpret_cast<const std::uint32_t*>(packed.data());
    if (reinterpret_cast<std::uintptr_t>(packed.data()) % alignof(std::uint32_t) != 0) {
      copied.resize(begin.back());
      std::memcpy(copied.data(), packed.data(), packed.shape(0));
      words = copied.data();
    }
    parallel_for(threads_for(numbers.size(), n_threads), n,
                 [&](std::size_t i, int) { unpack(words + begin[i], length, widths[i], numbers.data() + i * length); });
  }
  return to_numpy(std::move(numbers));
}

}  // namespace

void bind_packing(nb::module_& m) {
  m.def("pack_slices", &pack_slices, "slices"_a, "n_threads"_a, "Integers in few bits, row by row.");
  m.def("unpack_slices", &unpack_slices, "packed"_a, "n_slices"_a, "length"_a, "n_threads"_a,
        "The rows of integers that were packed, one after the other.");
}

}  // namespace polyleaf
