// SPDX-License-Identifier: Apache-2.0
// The functions of ops/norm/residual_norm.h on CUDA tensors.
#include "ops/cuda/residual_norm.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include "ops/cuda/low_types.h"
#include "ops/device/device_ops.h"
#include "ops/norm/residual_norm.h"

namespace welkin::ops {
namespace {

constexpr const char* kResidualNorm = "residual_norm";

template <typename Low>
const Low* read_as(const at::Tensor& tensor) {
  return static_cast<const Low*>(tensor.const_data_ptr());
}

at::Tensor forward_on_cuda(const at::Tensor& x, const at::Tensor& branch, const at::Tensor& weight, const at::Tensor& bias,
                           double epsilon, at::ScalarType type, NormState& state) {
  const bool has_branch = branch.defined();
  check_places(kResidualNorm, x, {x, has_branch ? branch : x, weight, bias});
  TORCH_CHECK(!has_branch || branch.scalar_type() == type, kResidualNorm, ": a branch in the type of what is normalised");
  const c10::cuda::CUDAGuard guard(x.device());
  const int64_t width = x.size(-1), rows = x.numel() / width;
  const at::Tensor normed = at::empty(x.sizes(), x.options().dtype(type));
  state = {
      .sum = has_branch ? at::empty_like(x) : x, .mean = at::empty({rows}, x.options()), .rstd = at::empty({rows}, x.options())};
  for_low_type(kResidualNorm, type, [&](auto low) {
    using Low = decltype(low);
    NormForward<Low> call;
    call.rows = rows;
    call.width = width;
    call.epsilon = static_cast<float>(epsilon);
    call.x = x.const_data_ptr<float>();
    call.branch = has_branch ? read_as<Low>(branch) : nullptr;
    call.weight = weight.const_data_ptr<float>();
    call.bias = bias.const_data_ptr<float>();
    call.sum = has_branch ? state.sum.mutable_data_ptr<float>() : nullptr;
    call.normed = static_cast<Low*>(normed.mutable_data_ptr());
    call.mean = state.mean.mutable_data_ptr<float>();
    call.rstd = state.rstd.mutable_data_ptr<float>();
    C10_CUDA_CHECK(launch_norm_forward(call, c10::cuda::getCurrentCUDAStream()));
  });
  return normed;
}

NormGradients backward_on_cuda(const at::Tensor& grad_normed, const at::Tensor& of_sum, const NormState& state,
                               const at::Tensor& weight, bool has_branch) {
  check_places(kResidualNorm, state.sum, {grad_normed, state.sum, state.mean, state.rstd, weight});
  if (of_sum.defined()) check_places(kResidualNorm, state.sum, {of_sum});
  const c10::cuda::CUDAGuard guard(state.sum.device());
  const int64_t width = state.sum.size(-1), rows = state.sum.numel() / width;
  const auto options = state.sum.options();
  const at::Tensor partials = at::empty({norm_chunks(rows), 2, width}, options), of_parameters = at::empty({2, width}, options);
  NormGradients out;
  out.grad_x = at::empty_like(state.sum);
  const bool writes_branch = has_branch && grad_normed.scalar_type() != at::kFloat;
  if (has_branch) out.grad_branch = writes_branch ? at::empty_like(grad_normed) : out.grad_x;
  for_low_type(kResidualNorm, grad_normed.scalar_type(), [&](auto low) {
    using Low = decltype(low);
    NormBackward<Low> call;
    call.rows = rows;
    call.width = width;
    call.grad_normed = read_as<Low>(grad_normed);
    call.of_sum = of_sum.defined() ? of_sum.const_data_ptr<float>() : nullptr;
    call.sum = state.sum.const_data_ptr<float>();
    call.mean = state.mean.const_data_ptr<float>();
    call.rstd = state.rstd.const_data_ptr<float>();
    call.weight = weight.const_data_ptr<float>();
    call.grad_x = out.grad_x.mutable_data_ptr<float>();
    call.grad_branch = writes_branch ? static_cast<Low*>(out.grad_branch.mutable_data_ptr()) : nullptr;
    C10_CUDA_CHECK(launch_norm_backward(call, partials.mutable_data_ptr<float>(), of_parameters.mutable_data_ptr<float>(),
                                        c10::cuda::getCurrentCUDAStream()));
  });
  out.grad_weight = of_parameters.select(0, 0);
  out.grad_bias = of_parameters.select(0, 1);
  return out;
}

const bool kNormRegistered = [] {
  device_ops().norm = {.device = c10::kCUDA, .forward = &forward_on_cuda, .backward = &backward_on_cuda};
  return true;
}();

}  // namespace
}  // namespace welkin::ops
