// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/residual_sum.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/custom_function.h>

#include "ops/cpu/elementwise/convert_kernel.h"

namespace welkin::ops {
namespace {

constexpr int64_t kSumsPerTask = 1 << 15;

at::Tensor narrowed_gradient(const at::Tensor& grad) {
  const bool makes_graph = at::GradMode::is_enabled() && grad.requires_grad();
  if (!grad.is_contiguous() || makes_graph) return grad.to(at::kBFloat16);
  at::Tensor narrow = at::empty_like(grad, grad.options().dtype(at::kBFloat16));
  const auto kernel = convert_kernel(instruction_set()).narrow;
  at::parallel_for(0, grad.numel(), kSumsPerTask,
                   [=, from = grad.const_data_ptr<float>(), to = static_cast<Bf16*>(narrow.mutable_data_ptr())](
                       int64_t begin, int64_t end) { kernel(from + begin, nullptr, to + begin, 1, end - begin); });
  return narrow;
}

struct SumOfTwoTypes : torch::autograd::Function<SumOfTwoTypes> {
  static at::Tensor forward(torch::autograd::AutogradContext* /*context*/, const at::Tensor& x, const at::Tensor& branch) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    at::Tensor sum = at::empty(x.sizes(), x.options());
    const auto kernel = convert_kernel(instruction_set()).add;
    at::parallel_for(0, x.numel(), kSumsPerTask,
                     [=, a = x.const_data_ptr<float>(), b = static_cast<const Bf16*>(branch.const_data_ptr()),
                      to = sum.mutable_data_ptr<float>()](int64_t begin, int64_t end) {
                       kernel(a + begin, b + begin, to + begin, end - begin);
                     });
    return sum;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    return {grads[0], context->needs_input_grad(1) ? narrowed_gradient(grads[0]) : at::Tensor()};
  }
};

}  // namespace

at::Tensor residual_sum(const at::Tensor& x, const at::Tensor& branch) {
  const bool has_two_types = x.scalar_type() == at::kFloat && branch.scalar_type() == at::kBFloat16;
  const bool is_for_kernel = x.is_cpu() && branch.is_cpu() && x.is_contiguous() && branch.is_contiguous();
  if (!has_two_types || !is_for_kernel || x.sizes() != branch.sizes()) return x + branch;
  return SumOfTwoTypes::apply(x, branch);
}

}  // namespace welkin::ops
