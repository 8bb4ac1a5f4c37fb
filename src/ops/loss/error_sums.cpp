// SPDX-License-Identifier: Apache-2.0
#include "ops/loss/error_sums.h"

#include <torch/csrc/autograd/custom_function.h>

#include "ops/base/once_differentiable.h"
#include "ops/device/device_ops.h"

namespace welkin::ops {
namespace {

struct ErrorSumsOnDevice : torch::autograd::Function<ErrorSumsOnDevice> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& prediction, const at::Tensor& target,
                            int64_t kind, double rate) {
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    context->save_for_backward({prediction, target});
    context->saved_data["kind"] = kind;
    context->saved_data["rate"] = rate;
    return device_ops().errors.forward(prediction, target, static_cast<ErrorKind>(kind), rate);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& grads) {
    once_differentiable("sums of errors");
    const auto saved = context->get_saved_variables();
    const auto kind = static_cast<ErrorKind>(context->saved_data["kind"].toInt());
    const double rate = context->saved_data["rate"].toDouble();
    return {device_ops().errors.backward(grads[0].contiguous(), saved[0], saved[1], kind, rate), {}, {}, {}};
  }
};

bool has_error_type(const at::Tensor& prediction) {
  const at::ScalarType type = prediction.scalar_type();
  return type == at::kFloat || type == at::kHalf || type == at::kBFloat16;
}

}  // namespace

bool fuses_error_sums(const at::Tensor& prediction, const at::Tensor& target) {
  const DeviceErrors& table = device_ops().errors;
  const bool has_form = prediction.dim() == kErrorDims || prediction.dim() == kErrorDims - 1;
  return table.forward != nullptr && prediction.device().type() == table.device && target.device() == prediction.device() &&
         has_form && prediction.numel() > 0 && prediction.sizes() == target.sizes() && has_error_type(prediction) &&
         target.scalar_type() == at::kFloat && !target.requires_grad();
}

at::Tensor error_sums(const at::Tensor& prediction, const at::Tensor& target, ErrorKind kind, double rate) {
  return ErrorSumsOnDevice::apply(prediction, target, static_cast<int64_t>(kind), rate);
}

void fill_error_sizes(const at::Tensor& values, int64_t (&size)[kErrorDims]) {
  const int64_t missing = kErrorDims - values.dim();
  for (int64_t dim = 0; dim < kErrorDims; ++dim) {
    size[dim] = dim < 2 ? values.size(dim) : dim - missing < 2 ? 1 : values.size(dim - missing);
  }
}

void fill_error_strides(const at::Tensor& values, int64_t (&stride)[kErrorDims]) {
  const int64_t missing = kErrorDims - values.dim();
  for (int64_t dim = 0; dim < kErrorDims; ++dim) {
    stride[dim] = dim < 2 ? values.stride(dim) : dim - missing < 2 ? 0 : values.stride(dim - missing);
  }
}

}  // namespace welkin::ops
