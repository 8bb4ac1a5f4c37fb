// SPDX-License-Identifier: Apache-2.0
// Layer normalisation, whose sums are float32 for low-precision inputs too.
#include "model/layers/layer_norm.h"

#include <ATen/ops/empty.h>

#include <ostream>

#include "model/base/init.h"
#include "ops/norm/residual_norm.h"

namespace welkin::model {

LayerNorm::LayerNorm(std::string path, int64_t width, double epsilon)
    : Layer(std::move(path)), whole_(this->path()), epsilon_(epsilon) {
  weight = register_parameter("weight", at::empty({width}));
  bias = register_parameter("bias", at::empty({width}));
}

at::Tensor LayerNorm::forward(const at::Tensor& x) const {
  return whole_({x}, [this](Tensors in) { return Tensors{ops::norm_for_matmul(in.at(0), weight, bias, epsilon_)}; }).at(0);
}

ops::ResidualNorm LayerNorm::of_sum(const at::Tensor& x, const at::Tensor& branch) const {
  if (whole_.is_unwrapped()) return ops::residual_norm(x, branch, weight, bias, epsilon_);
  const at::Tensor sum = x.add(branch);
  return {.sum = sum, .normed = forward(sum)};
}

void LayerNorm::initialise(uint64_t /*seed*/) {
  fill_constant(weight, 1.0);
  fill_constant(bias, 0.0);
}

void LayerNorm::pretty_print(std::ostream& stream) const {
  stream << "LayerNorm((" << weight.size(0) << ",), eps=" << epsilon_ << ", elementwise_affine=True)";
}

}  // namespace welkin::model
