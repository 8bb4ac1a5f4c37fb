// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/residual_sum.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include "ops/cpu/elementwise/convert_kernel.h"

namespace welkin::ops {
namespace {

constexpr int64_t kSumsPerTask = 1 << 15;

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
    return {grads[0], context->needs_input_grad(1) ? grads[0].to(at::kBFloat16) : at::Tensor()};
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
