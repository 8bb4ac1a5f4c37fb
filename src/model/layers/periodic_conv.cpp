// SPDX-License-Identifier: Apache-2.0
#include "model/layers/periodic_conv.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/conv_transpose2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/max_pool2d.h>

#include <array>
#include <cmath>
#include <ostream>

#include "model/base/init.h"
#include "ops/base/autocast.h"

namespace welkin::model {
namespace {

constexpr int64_t kLongitude = 3;  // dim of (B, C, H, W)
constexpr int64_t kDepth = 2;      // dim of (B, C, D, H, W)
constexpr std::array<int64_t, 2> kHalving{2, 2}, kEveryPoint{1, 1};

at::Tensor around(const at::Tensor& x_BCHW) {
  const int64_t last = x_BCHW.size(kLongitude) - 1;
  return at::cat({x_BCHW.narrow(kLongitude, last, 1), x_BCHW, x_BCHW.narrow(kLongitude, 0, 1)}, kLongitude);
}

// Treats a field as a box with one point along its depth.
at::Tensor on_blocks_of(const LocalLayer& layer, const at::Tensor& x_BCHW,
                        const std::function<at::Tensor(const at::Tensor&, const ops::BoxShape&)>& placed) {
  const auto place = [&placed](const Tensors& x_BCDHW, const ops::BoxShape& padding) {
    return placed(x_BCDHW.front().squeeze(kDepth), padding).unsqueeze(kDepth);
  };
  return layer.on_blocks({x_BCHW.unsqueeze(kDepth)}, place).squeeze(kDepth);
}

}  // namespace

PeriodicConv::PeriodicConv(std::string path, int64_t in_channels, int64_t out_channels)
    : LocalLayer(std::move(path)), whole_(this->path()) {
  weight = register_parameter("weight", at::empty({out_channels, in_channels, 3, 3}));
}

at::Tensor PeriodicConv::forward(const at::Tensor& x_BCHW) const {
  const auto body = [this](const Tensors& in) {
    if (!on_blocks) return Tensors{placed(in.at(0), rule().padding)};
    return Tensors{on_blocks_of(*this, ops::cast_operand(in.at(0), ops::OperatorClass::Matmul),
                                [this](const at::Tensor& x, const ops::BoxShape& padding) { return placed(x, padding); })};
  };
  return whole_({x_BCHW}, body).at(0);
}

LocalRule PeriodicConv::rule() const { return {.kernel = {1, 3, 3}, .padding = {0, 1, 1}, .periodic = {false, false, true}}; }

at::Tensor PeriodicConv::placed(const at::Tensor& x_BCHW, const ops::BoxShape& padding) const {
  const std::array<int64_t, 2> beyond_poles{padding[1], 0};
  return at::conv2d(padding[2] > 0 ? around(x_BCHW) : x_BCHW, weight, {}, kEveryPoint, beyond_poles);
}

void PeriodicConv::initialise(uint64_t seed) {
  fill_uniform(weight, seed, path_of("weight"), 1.0 / std::sqrt(static_cast<double>(weight[0].numel())));
}

void PeriodicConv::pretty_print(std::ostream& stream) const {
  stream << "Conv2d(" << weight.size(1) << ", " << weight.size(0)
         << ", kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), bias=False, periodic in longitude)";
}

DoublingConv::DoublingConv(std::string path, int64_t in_channels, int64_t out_channels)
    : LocalLayer(std::move(path)), whole_(this->path()) {
  weight = register_parameter("weight", at::empty({in_channels, out_channels, 2, 2}));
  bias = register_parameter("bias", at::empty({out_channels}));
}

at::Tensor DoublingConv::forward(const at::Tensor& x_BCHW) const {
  const auto body = [this](const Tensors& in) {
    if (!on_blocks) return Tensors{placed(in.at(0), rule().padding)};
    return Tensors{on_blocks_of(*this, ops::cast_operand(in.at(0), ops::OperatorClass::Matmul),
                                [this](const at::Tensor& x, const ops::BoxShape& padding) { return placed(x, padding); })};
  };
  return whole_({x_BCHW}, body).at(0);
}

LocalRule DoublingConv::rule() const { return {.kernel = {1, 2, 2}, .stride = {1, 2, 2}, .is_transposed = true}; }

at::Tensor DoublingConv::placed(const at::Tensor& x_BCHW, const ops::BoxShape& padding) const {
  return at::conv_transpose2d(x_BCHW, weight, bias, kHalving, at::IntArrayRef(padding).slice(1));
}

void DoublingConv::initialise(uint64_t seed) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(weight[0].numel()));
  fill_uniform(weight, seed, path_of("weight"), bound);
  fill_uniform(bias, seed, path_of("bias"), bound);
}

void DoublingConv::pretty_print(std::ostream& stream) const {
  stream << "ConvTranspose2d(" << weight.size(0) << ", " << weight.size(1) << ", kernel_size=(2, 2), stride=(2, 2))";
}

at::Tensor HalvingPool::forward(const at::Tensor& x_BCHW) const {
  const auto pool = [](const at::Tensor& x, const ops::BoxShape& /*padding*/) { return at::max_pool2d(x, kHalving); };
  return on_blocks ? on_blocks_of(*this, x_BCHW, pool) : pool(x_BCHW, {});
}

LocalRule HalvingPool::rule() const { return {.kernel = {1, 2, 2}, .stride = {1, 2, 2}}; }

void HalvingPool::pretty_print(std::ostream& stream) const { stream << "MaxPool2d(kernel_size=2, stride=2)"; }

}  // namespace welkin::model
