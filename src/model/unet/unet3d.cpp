// SPDX-License-Identifier: Apache-2.0
// The U-Net from its blocks.
#include "model/unet/unet3d.h"

#include <ATen/ops/tanh.h>

#include <string>

namespace welkin::model {
namespace {

constexpr double kNegativeSlope = 0.01;
constexpr double kRelu = 0.0;

}  // namespace

DownBlock::DownBlock(std::string path, int64_t in_channels, int64_t out_channels, const ConvInit& initial)
    : Layer(std::move(path)), whole_(this->path()), conv_(add<StridedConv3d>("0", in_channels, out_channels, initial)) {}

at::Tensor DownBlock::forward(const at::Tensor& x_BCDHW) const {
  return whole_({x_BCDHW}, [this](Tensors in) { return Tensors{conv_->forward(in.at(0), {kNegativeSlope})}; }).at(0);
}

UpBlock::UpBlock(std::string path, int64_t in_channels, int64_t out_channels, const ConvInit& initial)
    : Layer(std::move(path)), whole_(this->path()), conv_(add<TransposedConv3d>("0", in_channels, out_channels, initial)) {}

at::Tensor UpBlock::forward(const Tensors& x_BCDHW) const {
  return whole_(x_BCDHW, [this](Tensors in) { return Tensors{conv_->forward(in, {kRelu})}; }).at(0);
}

Unet3d::Unet3d(const Unet3dOptions& options) : last_site_("conv_last") {
  const ConvInit initial{options.conv_deviation, options.conv_bias};
  for (int64_t scale = 1; scale <= options.scales; ++scale) {
    const int64_t in = scale == 1 ? options.in_channels : options.channels(scale - 1);
    down_.push_back(add<DownBlock>("conv_down" + std::to_string(scale), in, options.channels(scale), initial));
  }
  for (int64_t scale = options.scales; scale >= 2; --scale) {
    up_.push_back(
        add<UpBlock>("conv_up" + std::to_string(scale), options.up_in_channels(scale), options.channels(scale - 1), initial));
  }
  last_ = add<TransposedConv3d>("conv_last", options.up_in_channels(1), options.out_channels, initial);
}

at::Tensor Unet3d::forward(const at::Tensor& input, const ForwardContext& /*context*/) {
  Tensors skips;
  at::Tensor down = input;
  for (const auto& block : down_) skips.push_back(down = block->forward(down));
  Tensors x{skips.back()};  // the deepest is the way itself
  skips.pop_back();
  for (const auto& block : up_) {
    x = {block->forward(x), skips.back()};
    skips.pop_back();
  }
  return at::tanh(last_site_(x, [this](Tensors in) { return Tensors{last_->forward(in)}; }).at(0));
}

std::vector<Site*> Unet3d::sites() {
  std::vector<Site*> sites = Model::sites();
  sites.push_back(&last_site_);
  return sites;
}

}  // namespace welkin::model
