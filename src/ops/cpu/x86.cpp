// SPDX-License-Identifier: Apache-2.0
// Features of an x86-64 CPU, and its kernels.
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/error.h"
#include "ops/arithmetic/update_kernel.h"
#include "ops/base/instruction_support.h"
#include "ops/base/processor_override.h"
#include "ops/cpu/attention/attention_kernel.h"
#include "ops/cpu/convolution/convolution_kernel.h"
#include "ops/cpu/elementwise/convert_kernel.h"
#include "ops/cpu/elementwise/gelu_kernel.h"
#include "ops/cpu/elementwise/mask_kernel.h"
#include "ops/cpu/elementwise/normal_kernel.h"
#include "ops/cpu/matrix/matrix_kernel.h"

namespace welkin::ops {
namespace {

constexpr unsigned int kAmxBf16 = 22;
constexpr unsigned int kAvx512Fp16 = 23;
constexpr unsigned int kAmxTile = 24;

// Tests a bit of EDX of leaf 7.
bool has_extended_feature(unsigned int bit) {
  unsigned int a = 0;
  unsigned int b = 0;
  unsigned int c = 0;
  unsigned int d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> bit & 1U) != 0;
}

// Linux saves tile registers (8 KiB a thread) only for processes that request it, from 5.16 on. Repeated requests are harmless.
bool may_use_tiles() {
  constexpr long kRequestComponent = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;              // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestComponent, kTileData) == 0;
}

bool may_have(InstructionSet set) {
  const auto& best = processor_override().best_set;
  return !best || static_cast<int>(set) <= static_cast<int>(*best);
}

bool has_fast_bf16_dot() {
  const bool has_dot = cpu_has_avx512() && __builtin_cpu_supports("avx512bf16") != 0;
  const auto& said = processor_override().bf16_dot;
  if (said && *said != Bf16Dot::None && !has_dot) {
    throw ConfigError("ops", "this CPU has no dot products of bfloat16: WELKIN_BF16_DOT=slow or fast", "Unset it, or say none");
  }
  return has_dot && (said ? *said == Bf16Dot::Fast : cpu_is_amd());
}

// The set's own of three tables, each from its own source.
template <typename Table>
const Table& table_of(InstructionSet set, const Table& (*portable)(), const Table& (*avx2)(), const Table& (*avx512)()) {
  switch (set) {
    case InstructionSet::Portable:
      return portable();
    case InstructionSet::Avx2:
      return avx2();
    case InstructionSet::Avx512:
    case InstructionSet::Amx:
      return avx512();
  }
  return portable();
}

}  // namespace

bool cpu_has_avx2() {
  static const bool has =
      may_have(InstructionSet::Avx2) && __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  return has;
}

bool cpu_has_avx512() {
  static const bool has = may_have(InstructionSet::Avx512) && cpu_has_avx2() && __builtin_cpu_supports("avx512f") != 0 &&
                          __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
                          __builtin_cpu_supports("avx512vl") != 0;
  return has;
}

bool cpu_has_amx_bf16() {
  static const bool has = may_have(InstructionSet::Amx) && cpu_has_avx512() && __builtin_cpu_supports("avx512bf16") != 0 &&
                          has_extended_feature(kAmxBf16) && has_extended_feature(kAmxTile) && may_use_tiles();
  return has;
}

bool cpu_is_amd() {
  static const bool is = __builtin_cpu_is("amd") != 0;
  return is;
}

bool cpu_has_fast_bf16() {
  static const bool has = has_fast_bf16_dot();
  return has;
}

bool cpu_multiplies_bf16() { return cpu_has_amx_bf16() || cpu_has_fast_bf16(); }

bool cpu_multiplies_fp16() {
  static const bool does = cpu_has_avx512() && has_extended_feature(kAvx512Fp16);
  return does;
}

template <>
const AttentionKernel<float>* attention_kernel<float>(InstructionSet set) {
  return &table_of(set, attention_kernel_portable, attention_kernel_avx2, attention_kernel_avx512);
}

template <>
const AttentionKernel<Bf16>* attention_kernel<Bf16>(InstructionSet set) {
  if (set == InstructionSet::Amx) return &attention_kernel_amx();
  return set == InstructionSet::Avx512 && cpu_has_fast_bf16() ? &attention_kernel_avx512bf16() : nullptr;
}

const ConvertKernel& convert_kernel(InstructionSet set) {
  return table_of(set, convert_kernel_portable, convert_kernel_avx2, convert_kernel_avx512);
}

const GeluKernels& gelu_kernels(InstructionSet set) {
  return table_of(set, gelu_kernels_portable, gelu_kernels_avx2, gelu_kernels_avx512);
}

const NormalKernel& normal_kernel(InstructionSet set) {
  return table_of(set, normal_kernel_portable, normal_kernel_avx2, normal_kernel_avx512);
}

const MatrixKernel* matrix_kernel(InstructionSet set) { return set == InstructionSet::Amx ? &matrix_kernel_amx() : nullptr; }

const MaskKernel& mask_kernel(InstructionSet set) {
  return table_of(set, mask_kernel_portable, mask_kernel_avx2, mask_kernel_avx512);
}

const UpdateKernel& update_kernel(InstructionSet set) {
  return table_of(set, update_kernel_portable, update_kernel_avx2, update_kernel_avx512);
}

template <>
const ConvolutionKernel<float>* convolution_kernel<float>(InstructionSet set) {
  return &table_of(set, convolution_kernel_portable, convolution_kernel_avx2, convolution_kernel_avx512);
}

template <>
const ConvolutionKernel<float, Bf16>* convolution_kernel<float, Bf16>(InstructionSet set) {
  return &table_of(set, widened_convolution_kernel_portable, widened_convolution_kernel_avx2, widened_convolution_kernel_avx512);
}

template <>
const ConvolutionKernel<Bf16>* convolution_kernel<Bf16>(InstructionSet set) {
  if (set == InstructionSet::Amx) return &convolution_kernel_amx();
  return set == InstructionSet::Avx512 && cpu_has_fast_bf16() ? &convolution_kernel_avx512bf16() : nullptr;
}

}  // namespace welkin::ops
