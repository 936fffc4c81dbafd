// Which instruction sets the processor has and the system saves.
#pragma once

namespace polyleaf {

struct InstructionSets {
  bool avx2 = false;
  bool avx512 = false;  // F, BW, DQ and VL
};

InstructionSets instruction_sets();

}  // namespace polyleaf
