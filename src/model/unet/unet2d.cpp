// SPDX-License-Identifier: Apache-2.0
#include "model/unet/unet2d.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/relu.h>

#include <string>

namespace welkin::model {
namespace {

// The nested modules that the parameters' names need: "maxpool_conv.1.double_conv".
class Nested : public Layer {
 public:
  explicit Nested(std::string path) : Layer(std::move(path)) {}

  std::shared_ptr<Nested> nest(const std::string& name) { return add<Nested>(name); }
  template <typename L>
  std::shared_ptr<L> hold(const std::string& name, int64_t in, int64_t out) {
    return add<L>(name, in, out);
  }
  std::shared_ptr<HalvingPool> hold_pool() { return add<HalvingPool>("0"); }
  std::shared_ptr<PointwiseConv> hold_last(const PointwiseConv::Options& options) { return add<PointwiseConv>("conv", options); }
  void pretty_print(std::ostream& stream) const override { stream << "Sequential"; }
};

}  // namespace

DoubleConv::DoubleConv(std::string path, int64_t in_channels, int64_t out_channels) : Layer(std::move(path)) {
  conv0_ = add<PeriodicConv>("0", in_channels, out_channels);
  norm1_ = add<InstanceNorm>("1", out_channels);
  conv3_ = add<PeriodicConv>("3", out_channels, out_channels);
  norm4_ = add<InstanceNorm>("4", out_channels);
}

at::Tensor DoubleConv::forward(const at::Tensor& x_BCHW) const {
  const at::Tensor middle = at::relu(norm1_->forward(conv0_->forward(x_BCHW)));
  return at::relu(norm4_->forward(conv3_->forward(middle)));
}

Unet2d::Unet2d(const Unet2dOptions& options) : options_(options) {
  const auto site = [this](const std::string& module) {
    return std::make_unique<Site>("levels." + std::to_string(down_.size() + up_.size()), std::vector<std::string>{module});
  };
  const auto first = add<Nested>("inc");
  down_.push_back({.conv = first->hold<DoubleConv>("double_conv", options.in_channels, options.channels(0)),
                   .pool = nullptr,
                   .up = nullptr,
                   .site = site("inc")});
  for (int64_t scale = 1; scale <= options.scales; ++scale) {
    const std::string name = "down" + std::to_string(scale);
    const auto level = add<Nested>(name)->nest("maxpool_conv");
    const auto pool = level->hold_pool();
    const auto conv = level->nest("1");
    down_.push_back({.conv = conv->hold<DoubleConv>("double_conv", options.channels(scale - 1), options.channels(scale)),
                     .pool = pool,
                     .up = nullptr,
                     .site = site(name)});
  }
  for (int64_t scale = options.scales; scale >= 1; --scale) {
    const std::string name = "up" + std::to_string(options.scales - scale + 1);
    const auto level = add<Nested>(name);
    const auto up = level->hold<DoublingConv>("up", options.channels(scale), options.channels(scale - 1));
    const auto conv = level->nest("conv")->hold<DoubleConv>("double_conv", options.channels(scale), options.channels(scale - 1));
    up_.push_back({.conv = conv, .pool = nullptr, .up = up, .site = site(name)});
  }
  last_ = add<Nested>("outc")->hold_last({.in = options.width, .out = options.out_channels});
}

// `in`: one tensor on the way down; on the way up the deeper scale's result and the skip connection.
at::Tensor Unet2d::run(const Scale& scale, Tensors in) const {
  const auto body = [conv = scale.conv.get(), pool = scale.pool.get(), up = scale.up.get()](const Tensors& x) {
    if (up != nullptr) return Tensors{conv->forward(at::cat({x.at(1), up->forward(x.at(0))}, 1))};
    return Tensors{conv->forward(pool != nullptr ? pool->forward(x.at(0)) : x.at(0))};
  };
  return (*scale.site)(std::move(in), body).at(0);
}

at::Tensor Unet2d::forward(const at::Tensor& input, const ForwardContext& /*context*/) {
  Tensors skipped{run(down_.front(), {input})};
  for (size_t i = 1; i < down_.size(); ++i) skipped.push_back(run(down_[i], {skipped.back()}));
  at::Tensor x_BCHW = skipped.back();
  for (size_t i = 0; i < up_.size(); ++i) x_BCHW = run(up_[i], {x_BCHW, skipped.at(up_.size() - 1 - i)});
  return output_of(x_BCHW, input);
}

at::Tensor Unet2d::output_of(const at::Tensor& x_BCHW, const at::Tensor& input) const {
  const at::Tensor output = last_->forward(x_BCHW);
  return options_.residual ? add_newest(output, input, options_.newest_input_channel, options_.residual_runs) : output;
}

// Tensors between segments: the next segment's input, then the skip connections still needed on the way up, deepest first.
std::vector<Segment> Unet2d::segments() {
  std::vector<Segment> segments;
  for (size_t i = 0; i < down_.size(); ++i) {
    const auto halve = [this, i](Tensors in, const at::Tensor& input, const ForwardContext& /*context*/) {
      in.insert(in.begin(), run(down_[i], {i == 0 ? input : in.at(0)}));
      return in;
    };
    const std::string name = i == 0 ? "inc" : "down" + std::to_string(i);
    segments.push_back({.name = name, .layers = {name}, .run = halve, .reads_input = i == 0});
  }
  for (size_t i = 0; i < up_.size(); ++i) {
    const bool is_last = i + 1 == up_.size();
    const auto twice = [this, i, is_last](Tensors in, const at::Tensor& input, const ForwardContext& /*context*/) {
      Tensors left{run(up_[i], {in.at(0), in.at(1)})};
      left.insert(left.end(), in.begin() + 2, in.end());
      return is_last ? Tensors{output_of(left.at(0), input)} : left;
    };
    const std::string name = "up" + std::to_string(i + 1);
    segments.push_back({.name = name, .layers = {name}, .run = twice, .reads_input = is_last});
  }
  segments.back().layers.push_back("outc");
  return segments;
}

std::vector<Site*> Unet2d::sites() {
  std::vector<Site*> sites;
  for (const std::vector<Scale>* way : {&down_, &up_}) {
    for (const Scale& scale : *way) {
      sites.push_back(scale.site.get());
      if (scale.up) sites.push_back(scale.up->own_sites().front());
      const std::vector<Site*> more = scale.conv->sites();
      sites.insert(sites.end(), more.begin(), more.end());
    }
  }
  sites.push_back(last_->own_sites().front());
  return sites;
}

}  // namespace welkin::model
