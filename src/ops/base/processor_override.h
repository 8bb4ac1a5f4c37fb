// SPDX-License-Identifier: Apache-2.0
// Environment variables that hide processor features, so that every choice that depends on them can be tested on one machine:
//   WELKIN_INSTRUCTION_SET  portable | avx2 | avx512 | amx: the best set that the processor has
//   WELKIN_BF16_DOT         none | slow | fast: its dot products of bfloat16 (AVX512-BF16), and whether they are twice as fast as
//                           float32's (AMD from Zen 4 on) or no faster (Intel)
//   WELKIN_GEMM             mkl | onednn: the library that float32 matmuls go to where the configuration names none
// Flags (--instruction_set, --gemm) choose among the available ones. oneDNN and aten detect the processor themselves:
// ONEDNN_MAX_CPU_ISA and ATEN_CPU_CAPABILITY restrict them in the same way. Read once; ConfigError for other values.
#pragma once

#include <optional>
#include <string>

#include "ops/base/instruction_set.h"

namespace welkin::ops {

enum class Bf16Dot { None, Slow, Fast };

struct ProcessorOverride {
  std::optional<InstructionSet> best_set;
  std::optional<Bf16Dot> bf16_dot;
  std::string gemm;  // empty: not given
};

const ProcessorOverride& processor_override();

// Parses texts of the environment; null for absent ones.
ProcessorOverride parse_processor_override(const char* instruction_set, const char* bf16_dot, const char* gemm);

}  // namespace welkin::ops
