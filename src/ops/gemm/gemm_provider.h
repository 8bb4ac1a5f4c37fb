// SPDX-License-Identifier: Apache-2.0
// The library for float32 GEMM on a CPU: MKL or oneDNN. Both are in the torch wheel and compute in float32. On AMD processors
// MKL takes a slow path and reaches a third to a half of oneDNN's rate on the same cores.
#pragma once

#include <optional>
#include <string_view>

namespace welkin::ops {

enum class GemmProvider { Mkl, OneDnn };

std::string_view name_of(GemmProvider provider);
std::optional<GemmProvider> parse_gemm_provider(std::string_view name);  // mkl, onednn

// The default for this processor: oneDNN on AMD, MKL elsewhere.
GemmProvider default_gemm_provider();

// Sets torch's process-wide switch. oneDNN on a CPU with AMX is a ConfigError: torch's only switch for it lets oneDNN
// round to bfloat16 there.
void set_gemm_provider(GemmProvider provider);
GemmProvider gemm_provider();

// Precision of products of float32 operands, by the names of torch.set_float32_matmul_precision. Less than Highest has an
// effect where the CPU multiplies bfloat16 by tiles (AMX): in linear layers and in our attention.
enum class Float32Precision {
  Highest,  // float32
  High,     // operands as sums of two bfloat16, three matmuls: 16 bits of significand
  Medium,   // operands rounded to bfloat16
};

// The named provider, or the default for this precision. With Medium on a CPU with tiles the default is oneDNN, which rounds
// the matmuls that our kernels do not take; mkl cannot, and is a ConfigError there.
GemmProvider provider_beside(std::optional<GemmProvider> named, Float32Precision precision);

// Sets the precision, and provider_beside() it as set_gemm_provider() does.
void set_float32_matmul(std::optional<GemmProvider> named, Float32Precision precision);
Float32Precision float32_precision();

// Number of bfloat16 whose sum replaces a float32 operand: 0 for none. Two parts need our kernels and the current instruction
// set; torch's libraries, too, round operands to one.
int64_t float32_parts();

}  // namespace welkin::ops
