// SPDX-License-Identifier: Apache-2.0
#include "model/layers/periodic_conv.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/conv_transpose2d.h>
#include <ATen/ops/empty.h>

#include <array>
#include <cmath>
#include <ostream>

#include "model/base/init.h"

namespace welkin::model {
namespace {

constexpr int64_t kLongitude = 3;  // dim of (B, C, H, W)
constexpr std::array<int64_t, 2> kBeyondPoles{1, 0}, kHalving{2, 2}, kEveryPoint{1, 1};

at::Tensor around(const at::Tensor& x_BCHW) {
  const int64_t last = x_BCHW.size(kLongitude) - 1;
  return at::cat({x_BCHW.narrow(kLongitude, last, 1), x_BCHW, x_BCHW.narrow(kLongitude, 0, 1)}, kLongitude);
}

}  // namespace

PeriodicConv::PeriodicConv(std::string path, int64_t in_channels, int64_t out_channels)
    : Layer(std::move(path)), whole_(this->path()) {
  weight = register_parameter("weight", at::empty({out_channels, in_channels, 3, 3}));
}

at::Tensor PeriodicConv::forward(const at::Tensor& x_BCHW) const {
  const auto body = [this](const Tensors& in) {
    return Tensors{at::conv2d(around(in.at(0)), weight, {}, kEveryPoint, kBeyondPoles)};
  };
  return whole_({x_BCHW}, body).at(0);
}

void PeriodicConv::initialise(uint64_t seed) {
  fill_uniform(weight, seed, path_of("weight"), 1.0 / std::sqrt(static_cast<double>(weight[0].numel())));
}

void PeriodicConv::pretty_print(std::ostream& stream) const {
  stream << "Conv2d(" << weight.size(1) << ", " << weight.size(0)
         << ", kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), bias=False, periodic in longitude)";
}

DoublingConv::DoublingConv(std::string path, int64_t in_channels, int64_t out_channels)
    : Layer(std::move(path)), whole_(this->path()) {
  weight = register_parameter("weight", at::empty({in_channels, out_channels, 2, 2}));
  bias = register_parameter("bias", at::empty({out_channels}));
}

at::Tensor DoublingConv::forward(const at::Tensor& x_BCHW) const {
  const auto body = [this](const Tensors& in) { return Tensors{at::conv_transpose2d(in.at(0), weight, bias, kHalving)}; };
  return whole_({x_BCHW}, body).at(0);
}

void DoublingConv::initialise(uint64_t seed) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(weight[0].numel()));
  fill_uniform(weight, seed, path_of("weight"), bound);
  fill_uniform(bias, seed, path_of("bias"), bound);
}

void DoublingConv::pretty_print(std::ostream& stream) const {
  stream << "ConvTranspose2d(" << weight.size(0) << ", " << weight.size(1) << ", kernel_size=(2, 2), stride=(2, 2))";
}

}  // namespace welkin::model
