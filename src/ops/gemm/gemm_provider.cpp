// SPDX-License-Identifier: Apache-2.0
// Torch routes float32 matmuls to oneDNN when oneDNN may use bfloat16 inside. Without AMX, oneDNN has no faster bfloat16 form
// and still computes in float32 (checked by tests/unit/ops/gemm/gemm_provider_test.cpp).
#include "ops/gemm/gemm_provider.h"

#include <ATen/Context.h>

#include <atomic>

#include "core/error.h"
#include "ops/base/instruction_set.h"
#include "ops/base/instruction_support.h"
#include "ops/base/processor_override.h"

namespace welkin::ops {
namespace {

// Read by every thread that multiplies; set before a run.
std::atomic<Float32Precision> precision_in_use{Float32Precision::Highest};

void let_onednn_multiply(bool multiplies) {
  at::globalContext().setFloat32Precision(at::Float32Backend::MKLDNN, at::Float32Op::MATMUL,
                                          multiplies ? at::Float32Precision::BF16 : at::Float32Precision::IEEE);
}

}  // namespace

std::string_view name_of(GemmProvider provider) { return provider == GemmProvider::OneDnn ? "onednn" : "mkl"; }

std::optional<GemmProvider> parse_gemm_provider(std::string_view name) {
  if (name == "mkl") return GemmProvider::Mkl;
  if (name == "onednn") return GemmProvider::OneDnn;
  return std::nullopt;
}

GemmProvider default_gemm_provider() {
  const auto said = parse_gemm_provider(processor_override().gemm);
  return said.value_or(cpu_is_amd() && !cpu_has_amx_bf16() ? GemmProvider::OneDnn : GemmProvider::Mkl);
}

void set_gemm_provider(GemmProvider provider) {
  if (provider == GemmProvider::OneDnn && cpu_has_amx_bf16()) {
    throw ConfigError("ops", "on a CPU with AMX, oneDNN would round float32 matmuls to bfloat16: gemm=onednn",
                      "Take gemm mkl; if that precision is wanted, float32_matmul_precision medium or amp_mode bf16");
  }
  let_onednn_multiply(provider == GemmProvider::OneDnn);
}

GemmProvider provider_beside(std::optional<GemmProvider> named, Float32Precision precision) {
  if (precision != Float32Precision::Medium || !cpu_has_amx_bf16()) return named.value_or(default_gemm_provider());
  if (named == GemmProvider::Mkl) {
    throw ConfigError("ops", "MKL has no matmuls of rounded operands: gemm=mkl beside float32_matmul_precision=medium",
                      "Leave gemm away, or take float32_matmul_precision highest or high");
  }
  return GemmProvider::OneDnn;
}

void set_float32_matmul(std::optional<GemmProvider> named, Float32Precision precision) {
  const GemmProvider provider = provider_beside(named, precision);
  const bool rounds = precision == Float32Precision::Medium && cpu_has_amx_bf16();
  rounds ? let_onednn_multiply(true) : set_gemm_provider(provider);
  precision_in_use = precision;
}

Float32Precision float32_precision() { return precision_in_use; }

int64_t float32_parts() {
  switch (precision_in_use) {
    case Float32Precision::Highest:
      return 0;
    case Float32Precision::High:
      return instruction_set() == InstructionSet::Amx ? 2 : 0;
    case Float32Precision::Medium:
      return cpu_has_amx_bf16() ? 1 : 0;
  }
  return 0;
}

GemmProvider gemm_provider() {
  const auto precision = at::globalContext().float32Precision(at::Float32Backend::MKLDNN, at::Float32Op::MATMUL);
  return precision == at::Float32Precision::BF16 ? GemmProvider::OneDnn : GemmProvider::Mkl;
}

}  // namespace welkin::ops
