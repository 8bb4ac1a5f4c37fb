// SPDX-License-Identifier: Apache-2.0
// Who multiplies float32 matrices on a CPU: MKL or oneDNN, both inside the torch wheel. MKL takes its slow path on AMD processors
// (a third to a half of what oneDNN reaches on the same cores). Both compute in float32.
#pragma once

#include <optional>
#include <string_view>

namespace welkin::ops {

enum class GemmProvider { Mkl, OneDnn };

std::string_view name_of(GemmProvider provider);
std::optional<GemmProvider> gemm_provider_named(std::string_view name);  // mkl, onednn

// The shipped choice for this processor: oneDNN on AMD, MKL elsewhere.
GemmProvider shipped_gemm_provider();

// Sets torch's process-wide switch. oneDNN on a CPU with AMX is a ConfigError: the only switch that torch has for it lets oneDNN
// round to bfloat16 there.
void use_gemm_provider(GemmProvider provider);
GemmProvider gemm_provider();

// As use_gemm_provider for the named provider or the shipped one. Where operands may be rounded to bfloat16 and the CPU
// multiplies those by tiles (AMX), oneDNN does so; mkl, which cannot, is a ConfigError beside it.
void use_float32_products(std::optional<GemmProvider> named, bool may_round);
// Whether operands of float32 products are rounded: those of linear layers and of our attention.
bool rounds_float32_products();

}  // namespace welkin::ops
