// SPDX-License-Identifier: Apache-2.0
#include "model/layers/periodic_conv.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/conv_transpose2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/max_pool2d.h>

#include <algorithm>
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
                        const std::function<at::Tensor(const at::Tensor&, const ops::PiecePlacement&)>& placed) {
  const auto place = [&placed](const Tensors& x_BCDHW, const ops::PiecePlacement& placement) {
    return placed(x_BCDHW.front().squeeze(kDepth), placement).unsqueeze(kDepth);
  };
  return layer.on_blocks({x_BCHW.unsqueeze(kDepth)}, {.place = place}).squeeze(kDepth);
}

}  // namespace

PeriodicConv::PeriodicConv(std::string path, int64_t in_channels, int64_t out_channels)
    : LocalLayer(std::move(path)), whole_(this->path()) {
  weight = register_parameter("weight", at::empty({out_channels, in_channels, 3, 3}));
}

at::Tensor PeriodicConv::forward(const at::Tensor& x_BCHW) const {
  const auto body = [this](const Tensors& in) {
    if (!on_blocks) return Tensors{placed(in.at(0), {.padding = rule().padding, .padding_end = rule().padding})};
    return Tensors{on_blocks_of(*this, ops::cast_operand(in.at(0), ops::OperatorClass::Matmul),
                                [this](const at::Tensor& x, const ops::PiecePlacement& at) { return placed(x, at); })};
  };
  return whole_({x_BCHW}, body).at(0);
}

LocalRule PeriodicConv::rule() const { return {.kernel = {1, 3, 3}, .padding = {0, 1, 1}, .periodic = {false, false, true}}; }

at::Tensor PeriodicConv::placed(const at::Tensor& x_BCHW, const ops::PiecePlacement& placement) const {
  const int64_t before = placement.padding[1], behind = placement.padding_end[1], both = std::min(before, behind);
  at::Tensor x = placement.padding[2] > 0 ? around(x_BCHW) : x_BCHW;
  if (before != behind) x = at::constant_pad_nd(x, {0, 0, before - both, behind - both});  // a block at one of the poles
  return at::conv2d(x, weight, {}, kEveryPoint, std::array<int64_t, 2>{both, 0});
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
    if (!on_blocks) return Tensors{placed(in.at(0), {.padding = rule().padding, .padding_end = rule().padding})};
    return Tensors{on_blocks_of(*this, ops::cast_operand(in.at(0), ops::OperatorClass::Matmul),
                                [this](const at::Tensor& x, const ops::PiecePlacement& at) { return placed(x, at); })};
  };
  return whole_({x_BCHW}, body).at(0);
}

LocalRule DoublingConv::rule() const { return {.kernel = {1, 2, 2}, .stride = {1, 2, 2}, .is_transposed = true}; }

// Each point makes its own two by two: padding takes away points that are made.
at::Tensor DoublingConv::placed(const at::Tensor& x_BCHW, const ops::PiecePlacement& placement) const {
  at::Tensor made = at::conv_transpose2d(x_BCHW, weight, bias, kHalving);
  for (const int64_t dim : {2, 3}) {
    const auto axis = static_cast<size_t>(dim - 1);  // of d, h, w
    const int64_t before = placement.padding[axis], behind = placement.padding_end[axis];
    if (before + behind > 0) made = made.narrow(dim, before, made.size(dim) - before - behind);
  }
  return made;
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
  const auto pool = [](const at::Tensor& x, const ops::PiecePlacement& /*placement*/) { return at::max_pool2d(x, kHalving); };
  return on_blocks ? on_blocks_of(*this, x_BCHW, pool) : pool(x_BCHW, {});
}

LocalRule HalvingPool::rule() const { return {.kernel = {1, 2, 2}, .stride = {1, 2, 2}}; }

void HalvingPool::pretty_print(std::ostream& stream) const { stream << "MaxPool2d(kernel_size=2, stride=2)"; }

}  // namespace welkin::model
