// SPDX-License-Identifier: Apache-2.0
// What the CPU is and can do, as far as the environment does not take something away (processor_override.h); one source per
// processor family, chosen by CMake.
#pragma once

namespace welkin::ops {

bool cpu_has_avx2();  // and FMA
bool cpu_has_avx512();
// Tiles of bfloat16 beside AVX-512, and leave of the operating system to use them: asked for once, for the whole process.
bool cpu_has_amx_bf16();
bool cpu_is_amd();
// Dot matmuls of bfloat16 at twice the rate of float32: AMD from Zen 4 on. Intel's without AMX are no faster than float32.
bool cpu_has_fast_bf16();
// Whether torch's libraries have matmuls of the type that are no slower than float32's. oneDNN's of bfloat16 need AMX or
// fast dot products (with Intel's alone a ViT's step takes 1.5 times as long as in float32, with plain AVX-512 three times),
// those of float16 an extension of AVX-512. Yes on other families of processors, of which nothing is known here.
bool cpu_multiplies_bf16();
bool cpu_multiplies_fp16();

}  // namespace welkin::ops
