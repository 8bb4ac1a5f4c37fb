// SPDX-License-Identifier: Apache-2.0
// Torch routes float32 products to oneDNN when oneDNN may use bfloat16 inside. Without AMX, oneDNN has no faster bfloat16 form
// and computes in float32 all the same (checked by tests/unit/ops/gemm_provider_test.cpp).
#include "ops/gemm_provider.h"

#include <ATen/Context.h>

#include "core/error.h"
#include "ops/instruction_support.h"

namespace welkin::ops {

namespace {

void let_onednn_multiply(bool multiplies) {
  at::globalContext().setFloat32Precision(at::Float32Backend::MKLDNN, at::Float32Op::MATMUL,
                                          multiplies ? at::Float32Precision::BF16 : at::Float32Precision::IEEE);
}

}  // namespace

std::string_view name_of(GemmProvider provider) { return provider == GemmProvider::OneDnn ? "onednn" : "mkl"; }

std::optional<GemmProvider> gemm_provider_named(std::string_view name) {
  if (name == "mkl") return GemmProvider::Mkl;
  if (name == "onednn") return GemmProvider::OneDnn;
  return std::nullopt;
}

GemmProvider shipped_gemm_provider() { return cpu_is_amd() && !cpu_has_amx_bf16() ? GemmProvider::OneDnn : GemmProvider::Mkl; }

void use_gemm_provider(GemmProvider provider) {
  if (provider == GemmProvider::OneDnn && cpu_has_amx_bf16()) {
    throw ConfigError("ops", "on a CPU with AMX, oneDNN would round float32 products to bfloat16: gemm=onednn",
                      "Take gemm mkl; if that precision is wanted, float32_matmul_precision medium or amp_mode bf16");
  }
  let_onednn_multiply(provider == GemmProvider::OneDnn);
}

void use_float32_products(std::optional<GemmProvider> named, bool may_round) {
  if (!may_round || !cpu_has_amx_bf16()) return use_gemm_provider(named.value_or(shipped_gemm_provider()));
  if (named == GemmProvider::Mkl) {
    throw ConfigError("ops", "MKL has no products of rounded operands: gemm=mkl beside float32_matmul_precision=medium",
                      "Leave gemm away, or take float32_matmul_precision highest");
  }
  let_onednn_multiply(true);
}

bool rounds_float32_products() { return cpu_has_amx_bf16() && gemm_provider() == GemmProvider::OneDnn; }

GemmProvider gemm_provider() {
  const auto precision = at::globalContext().float32Precision(at::Float32Backend::MKLDNN, at::Float32Op::MATMUL);
  return precision == at::Float32Precision::BF16 ? GemmProvider::OneDnn : GemmProvider::Mkl;
}

}  // namespace welkin::ops
