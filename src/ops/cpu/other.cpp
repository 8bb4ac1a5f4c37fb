// SPDX-License-Identifier: Apache-2.0
// Processor families other than x86-64: the portable kernels.
#include "ops/arithmetic/update_kernel.h"
#include "ops/base/instruction_support.h"
#include "ops/cpu/attention/attention_kernel.h"
#include "ops/cpu/convolution/convolution_kernel.h"
#include "ops/cpu/elementwise/convert_kernel.h"
#include "ops/cpu/elementwise/gelu_kernel.h"
#include "ops/cpu/elementwise/mask_kernel.h"
#include "ops/cpu/elementwise/normal_kernel.h"
#include "ops/cpu/matrix/matrix_kernel.h"

namespace welkin::ops {

bool cpu_has_avx2() { return false; }
bool cpu_has_avx512() { return false; }
bool cpu_has_amx_bf16() { return false; }
bool cpu_is_amd() { return false; }
bool cpu_has_fast_bf16() { return false; }
bool cpu_multiplies_bf16() { return true; }
bool cpu_multiplies_fp16() { return true; }

template <>
const AttentionKernel<float>* attention_kernel<float>(InstructionSet) {
  return &attention_kernel_portable();
}

template <>
const AttentionKernel<Bf16>* attention_kernel<Bf16>(InstructionSet) {
  return nullptr;
}

const ConvertKernel& convert_kernel(InstructionSet) { return convert_kernel_portable(); }

const GeluKernels& gelu_kernels(InstructionSet) { return gelu_kernels_portable(); }

const NormalKernel& normal_kernel(InstructionSet) { return normal_kernel_portable(); }

const MatrixKernel* matrix_kernel(InstructionSet) { return nullptr; }

const MaskKernel& mask_kernel(InstructionSet) { return mask_kernel_portable(); }

const UpdateKernel& update_kernel(InstructionSet) { return update_kernel_portable(); }

template <>
const ConvolutionKernel<float>* convolution_kernel<float>(InstructionSet) {
  return &convolution_kernel_portable();
}

template <>
const ConvolutionKernel<float, Bf16>* convolution_kernel<float, Bf16>(InstructionSet) {
  return &widened_convolution_kernel_portable();
}

template <>
const ConvolutionKernel<Bf16>* convolution_kernel<Bf16>(InstructionSet) {
  return nullptr;
}

}  // namespace welkin::ops
