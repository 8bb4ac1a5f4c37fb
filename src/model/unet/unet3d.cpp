// SPDX-License-Identifier: Apache-2.0
// The U-Net from its blocks.
#include "model/unet/unet3d.h"

#include <ATen/ops/tanh.h>

#include <string>

namespace welkin::model {
namespace {

constexpr double kNegativeSlope = 0.01;
constexpr double kRelu = 0.0;

Site level_site(int64_t scale, int64_t scales) {
  std::vector<std::string> layers;
  for (int64_t inner = scale; inner <= scales; ++inner) {
    layers.push_back("conv_down" + std::to_string(inner));
    layers.push_back("conv_up" + std::to_string(inner));
    if (inner > scale) layers.push_back("levels." + std::to_string(inner));
  }
  return Site("levels." + std::to_string(scale), std::move(layers));
}

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
  for (int64_t scale = 2; scale <= options.scales; ++scale) levels_.push_back(level_site(scale, options.scales));
  last_ = add<TransposedConv3d>("conv_last", options.up_in_channels(1), options.out_channels, initial);
}

at::Tensor Unet3d::forward(const at::Tensor& input, const ForwardContext& /*context*/) {
  const at::Tensor skip = down_.front()->forward(input);
  return output_of({level(2, skip), skip});
}

at::Tensor Unet3d::output_of(const Tensors& x_BCDHW) const {
  return at::tanh(last_site_(x_BCDHW, [this](Tensors in) { return Tensors{last_->forward(in)}; }).at(0));
}

at::Tensor Unet3d::level(int64_t scale, const at::Tensor& x_BCDHW) const {
  const auto work = [this, scale](Tensors in) {
    const at::Tensor down = down_.at(static_cast<size_t>(scale) - 1)->forward(in.at(0));
    const auto deepest = static_cast<int64_t>(down_.size());
    const Tensors halves = scale == deepest ? Tensors{down} : Tensors{level(scale + 1, down), down};
    return Tensors{up_.at(static_cast<size_t>(deepest - scale))->forward(halves)};
  };
  return levels_.at(static_cast<size_t>(scale) - 2)({x_BCDHW}, work).at(0);
}

// Tensors between segments: the next segment's input, then the results of halvings still needed, deepest first.
std::vector<Segment> Unet3d::segments() {
  std::vector<Segment> segments;
  for (size_t i = 0; i < down_.size(); ++i) {
    const auto halve = [this, i](Tensors in, const at::Tensor& input, const ForwardContext& /*context*/) {
      in.insert(in.begin(), down_[i]->forward(i == 0 ? input : in.at(0)));
      return in;
    };
    segments.push_back({.name = down_[i]->path(), .layers = {down_[i]->path()}, .run = halve, .reads_input = i == 0});
  }
  for (size_t i = 0; i < up_.size(); ++i) {
    const size_t joined = i == 0 ? 1 : 2;  // the deepest doubling has no skip
    const bool is_last = i + 1 == up_.size();
    const auto twice = [this, i, joined, is_last](Tensors in, const at::Tensor& /*input*/, const ForwardContext& /*context*/) {
      Tensors left{up_[i]->forward({in.begin(), in.begin() + static_cast<std::ptrdiff_t>(joined)})};
      left.insert(left.end(), in.begin() + static_cast<std::ptrdiff_t>(joined), in.end());
      return is_last ? Tensors{output_of(left)} : left;
    };
    segments.push_back({.name = up_[i]->path(), .layers = {up_[i]->path()}, .run = twice, .reads_input = false});
  }
  segments.back().layers.push_back("conv_last");
  return segments;
}

std::vector<Site*> Unet3d::sites() {
  std::vector<Site*> sites;
  for (size_t i = 0; i < down_.size(); ++i) {
    if (i > 0) sites.push_back(&levels_.at(i - 1));
    sites.push_back(down_[i]->own_sites().front());
  }
  for (const auto& block : up_) sites.push_back(block->own_sites().front());
  sites.push_back(&last_site_);
  return sites;
}

}  // namespace welkin::model
