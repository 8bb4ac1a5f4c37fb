// SPDX-License-Identifier: Apache-2.0
#include "model/layers/instance_norm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/instance_norm.h>

#include <ostream>

#include "model/base/init.h"
#include "ops/base/autocast.h"

namespace welkin::model {

InstanceNorm::InstanceNorm(std::string path, int64_t channels, double epsilon)
    : Layer(std::move(path)), whole_(this->path()), epsilon_(epsilon) {
  weight = register_parameter("weight", at::empty({channels}));
  bias = register_parameter("bias", at::empty({channels}));
}

at::Tensor InstanceNorm::forward(const at::Tensor& x_BCHW) const {
  const auto body = [this](const Tensors& in) {
    const at::Tensor x = ops::cast_operand(in.at(0), ops::OperatorClass::Reduction);
    if (of_block) return Tensors{of_block(x, weight, bias, epsilon_)};
    const at::Tensor y = at::instance_norm(x, weight, bias, {}, {}, /*use_input_stats=*/true, /*momentum=*/0.0, epsilon_,
                                           /*cudnn_enabled=*/true);
    // On a CPU torch 2.11 returns wrong gradients for a single sample if the incoming gradient is channels-last.
    if (y.requires_grad()) y.register_hook([](const at::Tensor& gradient) { return gradient.contiguous(); });
    return Tensors{y};
  };
  return whole_({x_BCHW}, body).at(0);
}

void InstanceNorm::initialise(uint64_t /*seed*/) {
  fill_constant(weight, 1.0);
  fill_constant(bias, 0.0);
}

void InstanceNorm::pretty_print(std::ostream& stream) const {
  stream << "InstanceNorm2d(" << weight.size(0) << ", eps=" << epsilon_ << ", affine=True)";
}

}  // namespace welkin::model
