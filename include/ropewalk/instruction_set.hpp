// The instruction sets that ropewalk's kernels are compiled for, and which of them runs here.
#pragma once

#include "ropewalk/export.hpp"

namespace ropewalk {

// Each contains those before it: what every machine has, x86-64-v3 and x86-64-v4.
enum class InstructionSet : int { baseline, avx2, avx512 };
inline constexpr int instruction_set_count = 3;
RW_EXPORT const char* name(InstructionSet);

// Built in, and this machine has it.
RW_EXPORT bool available(InstructionSet) noexcept;

// Returns the best one available, or what ROPEWALK_ISA=baseline|avx2|avx512 says. Read once. Throws
// Error(argument) for another value, Error(unsupported) for one this machine does not have.
RW_EXPORT InstructionSet instruction_set();

}  // namespace ropewalk
