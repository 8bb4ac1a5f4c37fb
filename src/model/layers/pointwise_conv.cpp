// SPDX-License-Identifier: Apache-2.0
#include "model/layers/pointwise_conv.h"

#include <ATen/ops/empty.h>

#include <cmath>
#include <ostream>

#include "model/base/init.h"
#include "ops/gemm/gelu_linear.h"
#include "ops/gemm/mixed_matmul.h"

namespace welkin::model {
namespace {

at::Tensor rows_of(const at::Tensor& x_BCHW) { return x_BCHW.flatten(2).transpose(1, 2); }

at::Tensor field_of(const at::Tensor& rows_BNC, const at::Tensor& like_BCHW) {
  return rows_BNC.transpose(1, 2).unflatten(2, {like_BCHW.size(2), like_BCHW.size(3)});
}

}  // namespace

PointwiseConv::PointwiseConv(std::string path, const Options& options)
    : Layer(std::move(path)), matmul_(this->path()), gain_(options.gain) {
  weight = register_parameter("weight", at::empty({options.out, options.in, 1, 1}));
  if (options.with_bias) bias = register_parameter("bias", at::empty({options.out}));
}

at::Tensor PointwiseConv::forward(const at::Tensor& x_BCHW) const { return field_of(forward_rows(rows_of(x_BCHW)), x_BCHW); }

at::Tensor PointwiseConv::forward_rows(const at::Tensor& x_BNC) const {
  if (matmul_.is_unwrapped()) return ops::linear(x_BNC, weight.flatten(1), bias);
  const auto body = [](const Tensors& in) { return Tensors{ops::linear(in.at(0), in.at(1))}; };
  return with_bias(matmul_({x_BNC, weight.flatten(1)}, body).at(0));
}

at::Tensor PointwiseConv::forward_gelu_rows(const at::Tensor& hidden_BNC) const {
  if (matmul_.is_unwrapped()) return ops::gelu_linear(hidden_BNC, weight.flatten(1), bias);
  const auto body = [](const Tensors& in) { return Tensors{ops::gelu_linear(in.at(0), in.at(1), {})}; };
  return with_bias(matmul_({hidden_BNC, weight.flatten(1)}, body).at(0));
}

at::Tensor PointwiseConv::with_bias(const at::Tensor& rows) const {
  return bias.defined() ? rows.add(bias.to(rows.scalar_type())) : rows;
}

void PointwiseConv::initialise(uint64_t seed) {
  fill_normal(weight, seed, path_of("weight"), std::sqrt(gain_ / static_cast<double>(weight.size(1))));
  if (bias.defined()) fill_constant(bias, 0.0);
}

void PointwiseConv::pretty_print(std::ostream& stream) const {
  stream << "Conv2d(" << weight.size(1) << ", " << weight.size(0) << ", kernel_size=(1, 1), stride=(1, 1)"
         << (bias.defined() ? ")" : ", bias=False)");
}

PointwisePair::PointwisePair(std::string path, const Options& options)
    : Layer(std::move(path)),
      in_(path_of("in")),
      first_(add<PointwiseConv>("0", PointwiseConv::Options{.in = options.in, .out = options.hidden, .gain = 2.0})),
      second_(add<PointwiseConv>(
          "2", PointwiseConv::Options{
                   .in = options.hidden, .out = options.out, .with_bias = options.last_bias, .gain = options.gain})) {}

at::Tensor PointwisePair::forward(const at::Tensor& x_BCHW) const {
  const at::Tensor entered = in_({rows_of(x_BCHW)}, [](Tensors in) { return in; }).at(0);
  return field_of(second_->forward_gelu_rows(first_->forward_rows(entered)), x_BCHW);
}

PointwiseMlp::PointwiseMlp(std::string path, const PointwisePair::Options& options)
    : Layer(std::move(path)), whole_(this->path()), fwd_(add<PointwisePair>("fwd", options)) {}

at::Tensor PointwiseMlp::forward(const at::Tensor& x_BCHW) const {
  return whole_({x_BCHW}, [this](Tensors in) { return Tensors{fwd_->forward(in.at(0))}; }).at(0);
}

}  // namespace welkin::model
