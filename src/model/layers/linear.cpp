// SPDX-License-Identifier: Apache-2.0
// The linear layer, fused with its bias if its site has no wrapper.
#include "model/layers/linear.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <ostream>

#include "model/base/init.h"
#include "ops/gemm/gelu_linear.h"
#include "ops/gemm/mixed_matmul.h"

namespace welkin::model {
namespace {

constexpr double kLinearDeviation = 0.02;

}  // namespace

Linear::Linear(std::string path, int64_t in_features, int64_t out_features, bool with_bias)
    : Layer(std::move(path)), matmul_(this->path()) {
  weight = register_parameter("weight", at::empty({out_features, in_features}));
  if (with_bias) bias = register_parameter("bias", at::empty({out_features}));
}

at::Tensor Linear::matmul(const at::Tensor& x) const {
  if (matmul_.is_unwrapped()) return ops::linear(x, weight);
  return matmul_({x, weight}, [](const Tensors& in) { return Tensors{ops::linear(in.at(0), in.at(1))}; }).at(0);
}

at::Tensor Linear::forward(const at::Tensor& x) const {
  return matmul_.is_unwrapped() ? ops::linear(x, weight, bias) : with_bias(matmul(x));
}

// The first matmul omits its bias if one kernel adds that bias and applies GELU.
at::Tensor Linear::forward_gelu_of(const Linear& first, const at::Tensor& x) const {
  if (!ops::fuses_bias_gelu(first.bias)) {
    const at::Tensor hidden = first.forward(x);
    if (matmul_.is_unwrapped()) return ops::gelu_linear(hidden, weight, bias);
    return with_bias(
        matmul_({hidden, weight}, [](const Tensors& in) { return Tensors{ops::gelu_linear(in.at(0), in.at(1), {})}; }).at(0));
  }
  const at::Tensor hidden = first.matmul(x);
  if (matmul_.is_unwrapped()) return ops::bias_gelu_linear(hidden, first.bias, weight, bias);
  // The other layer's bias is an input of the site, so that it has a gradient when the site is recomputed.
  return with_bias(matmul_({hidden, weight, first.bias}, [](const Tensors& in) {
                     return Tensors{ops::bias_gelu_linear(in.at(0), in.at(2), in.at(1), {})};
                   }).at(0));
}

std::vector<at::Tensor> Linear::forward_together(const std::vector<const Linear*>& layers, const at::Tensor& x) {
  std::vector<at::Tensor> weights, biases, out;
  if (std::ranges::all_of(layers, [](const Linear* layer) { return layer->matmul_.is_unwrapped(); })) {
    for (const Linear* layer : layers) {
      weights.push_back(layer->weight);
      biases.push_back(layer->bias);
    }
    return ops::linears(x, weights, biases);
  }
  for (const Linear* layer : layers) out.push_back(layer->forward(x));
  return out;
}

at::Tensor Linear::with_bias(const at::Tensor& matmul) const {
  return bias.defined() ? matmul.add(bias.to(matmul.scalar_type())) : matmul;
}

void Linear::initialise(uint64_t seed) {
  fill_normal(weight, seed, path_of("weight"), kLinearDeviation);
  if (bias.defined()) fill_constant(bias, 0.0);
}

void Linear::pretty_print(std::ostream& stream) const {
  stream << "Linear(in_features=" << weight.size(1) << ", out_features=" << weight.size(0)
         << ", bias=" << (bias.defined() ? "True" : "False") << ")";
}

}  // namespace welkin::model
