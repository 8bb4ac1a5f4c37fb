// SPDX-License-Identifier: Apache-2.0
#include "model/sfno/sfno.h"

#include <algorithm>

#include "model/base/block_segments.h"

namespace welkin::model {
namespace {

constexpr double kDecoderGain = 0.5;  // the skip from the input contributes the other half of the variance

std::shared_ptr<const ops::SphericalTransform> transform_on(const SfnoOptions& options, int64_t height, int64_t width,
                                                            config::GridType grid) {
  const bool is_gaussian = grid == config::GridType::LegendreGauss;
  return std::make_shared<const ops::SphericalTransform>(
      ops::SphericalGrid{.latitudes = height,
                         .longitudes = width,
                         .degrees = options.degrees(),
                         .orders = options.orders(),
                         .grid = is_gaussian ? ops::LatitudeGrid::LegendreGauss : ops::LatitudeGrid::Equiangular});
}

}  // namespace

Sfno::Sfno(const SfnoOptions& options) : options_(options) {
  const int64_t width = options.embed_dim;
  encoder_ = add<PointwiseMlp>(
      "encoder", PointwisePair::Options{.in = options.in_channels, .hidden = width, .out = width, .last_bias = false});
  const auto outer = transform_on(options, options.height, options.width, options.grid);
  const auto inner = transform_on(options, options.inner_height(), options.inner_width(), config::GridType::LegendreGauss);
  blocks_ = add<LayerList<SfnoBlock>>("blocks");
  const double last = static_cast<double>(std::max<int64_t>(1, options.depth - 1));
  for (int64_t i = 0; i < options.depth; ++i) {
    const SphericalPair transforms{.from = i == 0 ? outer : inner, .to = i + 1 == options.depth ? outer : inner};
    blocks_->append(options, transforms, options.dropout * static_cast<double>(i) / last);
  }
  decoder_ = add<PointwiseMlp>(
      "decoder", PointwisePair::Options{
                     .in = width, .hidden = width, .out = options.out_channels, .last_bias = false, .gain = kDecoderGain});
  residual_transform_ = add<PointwiseConv>(
      "residual_transform",
      PointwiseConv::Options{.in = options.in_channels, .out = options.out_channels, .with_bias = false, .gain = kDecoderGain});
}

at::Tensor Sfno::forward(const at::Tensor& input, const ForwardContext& context) {
  at::Tensor x_BCHW = encoder_->forward(input);
  for (const auto& block : blocks_->layers()) x_BCHW = block->forward(x_BCHW, context);
  return output_of(x_BCHW, input);
}

at::Tensor Sfno::output_of(const at::Tensor& x_BCHW, const at::Tensor& input) const {
  const at::Tensor output = decoder_->forward(x_BCHW).add(residual_transform_->forward(input));
  return options_.residual ? add_newest(output, input, options_.newest_input_channel, options_.residual_runs) : output;
}

std::vector<Site*> Sfno::sites() {
  std::vector<Site*> sites = encoder_->sites();
  for (Layer* layer : std::initializer_list<Layer*>{blocks_.get(), decoder_.get(), residual_transform_.get()}) {
    const std::vector<Site*> more = layer->sites();
    sites.insert(sites.end(), more.begin(), more.end());
  }
  return sites;
}

std::vector<Segment> Sfno::segments() {
  const auto enter = [this](const at::Tensor& input, const ForwardContext& /*context*/) { return encoder_->forward(input); };
  const auto leave = [this](const at::Tensor& x, const at::Tensor& input) { return output_of(x, input); };
  return block_segments(blocks_->layers(), enter, leave, {"encoder"}, {"decoder", "residual_transform"});
}

}  // namespace welkin::model
