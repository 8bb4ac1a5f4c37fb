// SPDX-License-Identifier: Apache-2.0
// What an x86-64 CPU has, and its kernels.
#include <cpuid.h>

#include "ops/cpu/attention_kernel.h"
#include "ops/cpu/convolution_kernel.h"
#include "ops/cpu/gelu_kernel.h"
#include "ops/cpu/mask_kernel.h"
#include "ops/cpu/normal_kernel.h"
#include "ops/cpu/update_kernel.h"
#include "ops/instruction_support.h"

namespace welkin::ops {

bool cpu_has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  return has;
}

bool cpu_has_avx512() {
  static const bool has = cpu_has_avx2() && __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                          __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
  return has;
}

bool cpu_has_amx_bf16() {
  static const bool has = [] {
    unsigned int a = 0;
    unsigned int b = 0;
    unsigned int c = 0;
    unsigned int d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> 22 & 1U) != 0;
  }();
  return has;
}

bool cpu_is_amd() {
  static const bool is = __builtin_cpu_is("amd") != 0;
  return is;
}

bool cpu_has_fast_bf16() {
  static const bool has = cpu_has_avx512() && cpu_is_amd() && __builtin_cpu_supports("avx512bf16") != 0;
  return has;
}

bool cpu_multiplies_bf16() { return cpu_has_avx512(); }

bool cpu_multiplies_fp16() {
  static const bool does = [] {
    unsigned int a = 0;
    unsigned int b = 0;
    unsigned int c = 0;
    unsigned int d = 0;
    return cpu_has_avx512() && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> 23 & 1U) != 0;
  }();
  return does;
}

template <>
const AttentionKernel<float>* attention_kernel<float>(InstructionSet set) {
  switch (set) {
    case InstructionSet::Portable:
      return &attention_kernel_portable();
    case InstructionSet::Avx2:
      return &attention_kernel_avx2();
    case InstructionSet::Avx512:
      return &attention_kernel_avx512();
  }
  return &attention_kernel_portable();
}

template <>
const AttentionKernel<Bf16>* attention_kernel<Bf16>(InstructionSet set) {
  return set == InstructionSet::Avx512 && cpu_has_fast_bf16() ? &attention_kernel_avx512bf16() : nullptr;
}

const GeluKernels& gelu_kernels(InstructionSet set) {
  switch (set) {
    case InstructionSet::Portable:
      return gelu_kernels_portable();
    case InstructionSet::Avx2:
      return gelu_kernels_avx2();
    case InstructionSet::Avx512:
      return gelu_kernels_avx512();
  }
  return gelu_kernels_portable();
}

const NormalKernel& normal_kernel(InstructionSet set) {
  switch (set) {
    case InstructionSet::Portable:
      return normal_kernel_portable();
    case InstructionSet::Avx2:
      return normal_kernel_avx2();
    case InstructionSet::Avx512:
      return normal_kernel_avx512();
  }
  return normal_kernel_portable();
}

const MaskKernel& mask_kernel(InstructionSet set) {
  switch (set) {
    case InstructionSet::Portable:
      return mask_kernel_portable();
    case InstructionSet::Avx2:
      return mask_kernel_avx2();
    case InstructionSet::Avx512:
      return mask_kernel_avx512();
  }
  return mask_kernel_portable();
}

const UpdateKernel& update_kernel(InstructionSet set) {
  switch (set) {
    case InstructionSet::Portable:
      return update_kernel_portable();
    case InstructionSet::Avx2:
      return update_kernel_avx2();
    case InstructionSet::Avx512:
      return update_kernel_avx512();
  }
  return update_kernel_portable();
}

template <>
const ConvolutionKernel<float>* convolution_kernel<float>(InstructionSet set) {
  switch (set) {
    case InstructionSet::Portable:
      return &convolution_kernel_portable();
    case InstructionSet::Avx2:
      return &convolution_kernel_avx2();
    case InstructionSet::Avx512:
      return &convolution_kernel_avx512();
  }
  return &convolution_kernel_portable();
}

template <>
const ConvolutionKernel<Bf16>* convolution_kernel<Bf16>(InstructionSet set) {
  return set == InstructionSet::Avx512 && cpu_has_fast_bf16() ? &convolution_kernel_avx512bf16() : nullptr;
}

}  // namespace welkin::ops
