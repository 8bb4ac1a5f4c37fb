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

// The shipped choice for this processor: oneDNN on AMD, MKL elsewhere.
GemmProvider default_gemm_provider();

// Sets torch's process-wide switch. oneDNN on a CPU with AMX is a ConfigError: the only switch that torch has for it lets oneDNN
// round to bfloat16 there.
void set_gemm_provider(GemmProvider provider);
GemmProvider gemm_provider();

// How exact products of float32 operands are, by the names of torch.set_float32_matmul_precision. Less than Highest comes in
// where the CPU multiplies bfloat16 by tiles (AMX): in linear layers and in our attention.
enum class Float32Precision {
  Highest,  // float32
  High,     // operands as sums of two bfloat16, three matmuls: 16 bits of significand
  Medium,   // operands rounded to bfloat16
};

// The named provider, or the shipped one for this precision: beside Medium on a CPU with tiles oneDNN, which rounds what our
// kernels do not take; mkl, which cannot, is a ConfigError there.
GemmProvider provider_beside(std::optional<GemmProvider> named, Float32Precision precision);

// The precision, and provider_beside() it as set_gemm_provider() allows it.
void set_float32_matmul(std::optional<GemmProvider> named, Float32Precision precision);
Float32Precision float32_precision();

// Of how many bfloat16 the sum stands for a float32 operand: 0 where it is none. Two parts are of our kernels alone, and of the
// instruction set in use; whether operands are rounded is torch's libraries', too.
int64_t float32_parts();

}  // namespace welkin::ops
