// SPDX-License-Identifier: Apache-2.0
// gelu(x + bias) and its gradients on a CPU, as plain pointers, and their table per instruction set; torch-free. The arguments
// are those of the GPU (ops/arithmetic/bias_gelu_kernel.h).
#pragma once

#include <cstdint>

#include "ops/arithmetic/bias_gelu_kernel.h"
#include "ops/base/instruction_set.h"
#include "ops/cpu/lanes/bf16.h"

namespace welkin::ops {

// For rows [begin, end). T is float or Bf16; the arithmetic is in float32.
template <typename T, typename Operand = T>
struct GeluKernel {
  void (*forward)(const GeluForward<T, Operand>& call, int64_t begin, int64_t end);
  // Writes grad_bias (width), the sum of these rows' gradients before rounding. grad_out may be overwritten by grad_x, or by out.
  void (*backward)(const GeluBackward<T, Operand>& call, int64_t begin, int64_t end, float* grad_bias);
};

struct GeluKernels {
  GeluKernel<float> of_float;
  GeluKernel<Bf16> of_bf16;
  GeluKernel<Bf16, float> of_widened;  // bit for bit as of_bf16, with casts of its operands
};

const GeluKernels& gelu_kernels_portable();
const GeluKernels& gelu_kernels_avx2();    // x86-64 only
const GeluKernels& gelu_kernels_avx512();  // x86-64 only

const GeluKernels& gelu_kernels(InstructionSet set);

}  // namespace welkin::ops
