// SPDX-License-Identifier: Apache-2.0
// Type and features of the CPU, less those that the environment disables (processor_override.h); one source per
// processor family, chosen by CMake.
#pragma once

namespace welkin::ops {

bool cpu_has_avx2();  // and FMA
bool cpu_has_avx512();
// AMX tiles of bfloat16 beside AVX-512, and the operating system's permission, requested once for the whole process.
bool cpu_has_amx_bf16();
bool cpu_is_amd();
// Dot products of bfloat16 at twice the rate of float32: AMD from Zen 4 on. Without AMX Intel's are no faster than float32.
bool cpu_has_fast_bf16();
// True if matmuls of the type in torch's libraries are not slower than float32's. oneDNN's bfloat16 needs AMX or
// fast dot products (with only Intel's a ViT's step takes 1.5 times as long as in float32, with plain AVX-512 three times).
// float16 needs an extension of AVX-512. True on other families of processors, about which nothing is known here.
bool cpu_multiplies_bf16();
bool cpu_multiplies_fp16();

}  // namespace welkin::ops
