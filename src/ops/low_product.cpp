// SPDX-License-Identifier: Apache-2.0
#include "ops/low_product.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/record_function.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <optional>
#include <vector>

#include "ops/autocast.h"
#include "ops/instruction_support.h"
#include "ops/layer_norm.h"

// MKL's, of which a wheel without it has none: null there. The enumerations of CBLAS are ints.
extern "C" {
#define WELKIN_MIXED_PRODUCT(name)                                                                                        \
  __attribute__((weak)) void name(int order, int turn_a, int turn_b, int m, int n, int k, float alpha, const uint16_t* a, \
                                  int lda, const uint16_t* b, int ldb, float beta, float* c, int ldc)
WELKIN_MIXED_PRODUCT(cblas_gemm_bf16bf16f32);
WELKIN_MIXED_PRODUCT(cblas_gemm_f16f16f32);
#undef WELKIN_MIXED_PRODUCT
}

namespace welkin::ops {
namespace {

constexpr int kRowMajor = 101, kAsItIs = 111, kTurned = 112;

// Read by every thread that multiplies; a test changes it.
std::atomic<std::optional<LowForm>> forced_form;

// Operands that were widened must not be cast down again.
class WithoutAutocast {
  c10::impl::ExcludeDispatchKeyGuard guard_{c10::autocast_dispatch_keyset};
};

using MixedProduct = decltype(&cblas_gemm_bf16bf16f32);
MixedProduct mixed_product_of(at::ScalarType type) {
  return type == at::kBFloat16 ? &cblas_gemm_bf16bf16f32 : &cblas_gemm_f16f16f32;
}

// A matrix as CBLAS reads it: dense rows, or dense columns.
struct MixedOperand {
  at::Tensor values;
  int turn = kAsItIs;
  int64_t stride = 0;

  explicit MixedOperand(const at::Tensor& x) : values(has_dense_rows(x) || has_dense_rows(x.t()) ? x : x.contiguous()) {
    if (!has_dense_rows(values)) turn = kTurned;
    const at::Tensor rows = turn == kTurned ? values.t() : values;
    stride = rows.size(0) == 1 ? rows.size(1) : rows.stride(0);
  }

  const uint16_t* data() const { return static_cast<const uint16_t*>(values.const_data_ptr()); }

 private:
  static bool has_dense_rows(const at::Tensor& x) {
    return (x.size(1) == 1 || x.stride(1) == 1) && (x.size(0) == 1 || x.stride(0) >= x.size(1));
  }
};

// a b + bias in float32, not rounded; bias (n) may be undefined.
at::Tensor wide_product(const at::Tensor& a, const at::Tensor& b, const at::Tensor& bias) {
  const int64_t m = a.size(0), k = a.size(1), n = b.size(1);
  const at::Tensor wide_bias = bias.defined() ? bias.to(at::kFloat) : bias;
  const auto at_most = [](int64_t length) { return length <= std::numeric_limits<int>::max(); };
  if (low_form(a.device(), a.scalar_type()) == LowForm::Mixed && std::min({m, n, k}) > 0) {
    const MixedOperand left(a), right(b);
    if (at_most(m) && at_most(n) && at_most(k) && at_most(left.stride) && at_most(right.stride)) {
      RECORD_FUNCTION("welkin::mm", std::vector<c10::IValue>());
      // Sums begin with the bias, or are written over whatever there is.
      at::Tensor out = bias.defined() ? wide_bias.expand({m, n}).contiguous() : at::empty({m, n}, a.options().dtype(at::kFloat));
      mixed_product_of(a.scalar_type())(kRowMajor, left.turn, right.turn, static_cast<int>(m), static_cast<int>(n),
                                        static_cast<int>(k), 1.0F, left.data(), static_cast<int>(left.stride), right.data(),
                                        static_cast<int>(right.stride), bias.defined() ? 1.0F : 0.0F,
                                        out.mutable_data_ptr<float>(), static_cast<int>(n));
      return out;
    }
  }
  const at::Tensor wide_a = a.to(at::kFloat), wide_b = b.to(at::kFloat);
  return bias.defined() ? at::addmm(wide_bias, wide_a, wide_b) : at::mm(wide_a, wide_b);
}

// For what at::linear has no form: 16-bit products in float32, and an input that is a norm's result, which is not kept.
struct OwnLinear : torch::autograd::Function<OwnLinear> {
  // `result` is x's, or null.
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const c10::intrusive_ptr<NormResult>& result) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    context->save_for_backward({result ? at::Tensor() : x, weight});
    context->saved_data["bias"] = bias.has_value();
    context->saved_data["sizes"] = x.sizes();
    context->saved_data["type"] = static_cast<int64_t>(x.scalar_type());
    if (result) context->saved_data["result"] = c10::IValue::make_capsule(result);
    return product_linear(x.to(weight.scalar_type()), weight, bias.value_or(at::Tensor()));
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& weight = saved[1];
    const at::Tensor grad = grads[0].reshape({-1, weight.size(0)});
    torch::autograd::variable_list gradients(4);
    if (context->needs_input_grad(0)) {
      const auto type = static_cast<at::ScalarType>(context->saved_data["type"].toInt());
      gradients[0] = linear_by_input(grad, weight, context->saved_data["sizes"].toIntVector()).to(type);
    }
    if (context->needs_input_grad(1)) {
      gradients[1] = linear_by_weight(grad, saved[0].defined() ? saved[0] : result_again(*context, weight.scalar_type()));
    }
    // The bias is an input only where there is one.
    if (context->saved_data["bias"].toBool() && context->needs_input_grad(2)) gradients[2] = grad.sum(0);
    return gradients;
  }

  static at::Tensor result_again(torch::autograd::AutogradContext& context, at::ScalarType type) {
    const auto holder = context.saved_data["result"].toCapsule();
    return static_cast<NormResult&>(*holder).again(type);
  }
};

}  // namespace

LowForm low_form(c10::Device device, at::ScalarType type) {
  if (!device.is_cpu() || (type != at::kBFloat16 && type != at::kHalf)) return LowForm::Direct;
  const bool multiplies = type == at::kBFloat16 ? cpu_multiplies_bf16() : cpu_multiplies_fp16();
  const LowForm form = forced_form.load().value_or(multiplies ? LowForm::Direct : LowForm::Mixed);
  return form == LowForm::Mixed && mixed_product_of(type) == nullptr ? LowForm::Widened : form;
}

LowFormGuard::LowFormGuard(LowForm form) { forced_form = form; }
LowFormGuard::~LowFormGuard() { forced_form = std::nullopt; }

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const auto low = [](const at::Tensor& operand) { return cast_operand(operand, OperatorClass::Product); };
  const auto low_bias = [&] { return bias.defined() ? std::optional(low(bias)) : std::nullopt; };
  if (const auto result = norm_result(x)) return OwnLinear::apply(x, low(weight), low_bias(), result);
  const at::Tensor operand = low(x);
  if (!widens_products(operand.device(), operand.scalar_type())) return at::linear(operand, weight, bias);
  return OwnLinear::apply(operand, low(weight), low_bias(), c10::intrusive_ptr<NormResult>());
}

at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  const WithoutAutocast as_they_are;
  return widens_products(a.device(), a.scalar_type()) ? wide_product(a, b, {}).to(a.scalar_type()) : at::mm(a, b);
}

at::Tensor product_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const WithoutAutocast as_they_are;
  if (!widens_products(x.device(), x.scalar_type())) return at::linear(x, weight, bias);
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = weight.size(0);
  return wide_product(x.reshape({-1, weight.size(1)}), weight.t(), bias).to(x.scalar_type()).view(sizes);
}

at::Tensor linear_by_input(const at::Tensor& grad, const at::Tensor& weight, at::IntArrayRef sizes) {
  return product(grad, weight).view(sizes);
}

at::Tensor linear_by_weight(const at::Tensor& grad, const at::Tensor& x) {
  return product(grad.t(), x.reshape({-1, x.size(-1)}));
}

}  // namespace welkin::ops
