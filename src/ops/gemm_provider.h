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

// Sets torch's process-wide switch. oneDNN on a CPU with AMX tiles is a ConfigError: the only switch that torch has for it would
// let oneDNN round to bfloat16 there.
void use_gemm_provider(GemmProvider provider);
GemmProvider gemm_provider();

}  // namespace welkin::ops
