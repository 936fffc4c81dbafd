// Integers in the fewest bits, for messages between machines: the numbers of a slice take as many bits as the largest
// of them needs.
//
// Numbers are folded (0, -1, 1, -2, ... become 0, 1, 2, 3, ...), so that small ones of either sign have leading zeros.
// A slice is cut into 32 lanes, each a run of neighbouring numbers, and the n-th numbers of all lanes share `width`
// words: whatever the width, neighbours are moved by the same shift.
#pragma once

#include <cstddef>
#include <cstdint>

namespace polyleaf {

constexpr int kPlainWidth = 32;  // of a slice whose numbers are left as they are

// The bits that each number of a slice takes; 0 where all are zero.
int packed_width(const std::int32_t* numbers, std::size_t n);
// The words that a slice of n numbers takes.
std::size_t packed_words(std::size_t n, int width);
void pack(const std::int32_t* numbers, std::size_t n, int width, std::uint32_t* words);
void unpack(const std::uint32_t* words, std::size_t n, int width, std::int32_t* numbers);

}  // namespace polyleaf
