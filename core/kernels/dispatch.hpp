// The hot loops. The other sources of this room are compiled once per instruction set; the best that the machine has is
// in use. They work on plain pointers: no code shared with the rest may be compiled with a wider instruction set.
#pragma once

namespace polyleaf {

// The name of the instruction set in use: "baseline", "avx2" or "avx512".
const char* kernels_in_use();

// Chooses the kernels by name; false where the machine does not have them.
bool select_kernels(const char* name);

}  // namespace polyleaf
