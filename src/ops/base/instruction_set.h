// SPDX-License-Identifier: Apache-2.0
// Which vector instructions our CPU kernels use: the best that the machine has, or less on request, so that every form can be
// tested on one machine. Kernels are built once per set, each in files of its own with its own compiler flags.
#pragma once

#include <optional>
#include <string_view>

namespace welkin::ops {

enum class InstructionSet {
  Portable,  // what the compiler makes of four lanes: SSE2, NEON
  Avx2,      // with FMA
  Avx512,    // F, BW, DQ, VL
  Amx,       // matmuls of bfloat16 by tiles, all else as Avx512
};

std::string_view name_of(InstructionSet set);
std::optional<InstructionSet> parse_instruction_set(std::string_view name);  // portable, avx2, avx512, amx

bool is_supported(InstructionSet set);  // by this CPU and its operating system

InstructionSet best_instruction_set();

// The set in use. It starts as the best that is supported.
InstructionSet instruction_set();

// Forces a set for the whole process; ConfigError where the machine does not have it. Not while kernels run.
void set_instruction_set(InstructionSet set);

}  // namespace welkin::ops
