// SPDX-License-Identifier: Apache-2.0
// The vector instructions of our CPU kernels: the best that the machine has, or fewer on request, so that every form can be
// tested on one machine. Kernels are compiled once per set, each in its own files with its own compiler flags.
#pragma once

#include <optional>
#include <string_view>

namespace welkin::ops {

enum class InstructionSet {
  Portable,  // as the compiler makes it from four lanes: SSE2, NEON
  Avx2,      // with FMA
  Avx512,    // F, BW, DQ, VL
  Amx,       // matmuls of bfloat16 by tiles, everything else as Avx512
};

std::string_view name_of(InstructionSet set);
std::optional<InstructionSet> parse_instruction_set(std::string_view name);  // portable, avx2, avx512, amx

bool is_supported(InstructionSet set);  // by this CPU and its operating system

InstructionSet best_instruction_set();

// The current set. Initially the best supported one.
InstructionSet instruction_set();

// Sets it for the whole process; ConfigError if the machine does not support it. Do not call it while kernels run.
void set_instruction_set(InstructionSet set);

}  // namespace welkin::ops
