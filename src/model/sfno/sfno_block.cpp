// SPDX-License-Identifier: Apache-2.0
#include "model/sfno/sfno_block.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>

#include <cmath>
#include <numbers>
#include <optional>

#include "model/base/init.h"
#include "ops/base/autocast.h"

namespace welkin::model {
namespace {

constexpr double kHalf = 0.5;  // two branches are added, each with half of the variance

// Coefficients (B, C, L, M, 2) and the weight of these degrees (C, C', L, 2) -> (B, C', L, M, 2).
Tensors mix(const Tensors& in) {
  const at::Tensor &coefficients = in.at(0), &weight = in.at(1);
  const at::Tensor rows_LRC = at::view_as_complex(coefficients.contiguous()).permute({2, 0, 3, 1}).flatten(1, 2);
  const at::Tensor mixed_LRC = at::bmm(rows_LRC, at::view_as_complex(weight.contiguous()).permute({2, 0, 1}));
  const at::Tensor mixed_LBMC = mixed_LRC.unflatten(1, {coefficients.size(0), coefficients.size(3)});
  return {at::view_as_real(mixed_LBMC.permute({1, 3, 0, 2}))};
}

}  // namespace

SpectralConv::SpectralConv(std::string path, const SfnoOptions& options, std::shared_ptr<const ops::SphericalTransform> to)
    : Layer(std::move(path)), whole_(this->path()), mix_(path_of("mix")), synthesis_(path_of("synthesis")), to_(std::move(to)) {
  weight = register_parameter("weight", at::empty({options.embed_dim, options.embed_dim, options.degrees(), 2}));
}

at::Tensor SpectralConv::forward(const at::Tensor& coefficients_BCLM2) const {
  const auto body = [this](const Tensors& in) {
    const ops::AutocastGuard in_float32(in.at(0).device().type(), std::nullopt);
    const Tensors mixed_BCLM2 = mix_({in.at(0), weight}, mix);
    return synthesis_(mixed_BCLM2,
                      [to = to_](const Tensors& c) { return Tensors{to->synthesise(at::view_as_complex(c.at(0)))}; });
  };
  return whole_({coefficients_BCLM2}, body).at(0);
}

void SpectralConv::initialise(uint64_t seed) {
  fill_normal(weight, seed, path_of("weight"), 1.0 / std::sqrt(static_cast<double>(weight.size(0))));
  const at::NoGradGuard no_grad;
  weight.select(2, 0).mul_(std::numbers::sqrt2);
}

SpectralFilter::SpectralFilter(std::string path, const SfnoOptions& options, SphericalPair transforms)
    : Layer(std::move(path)),
      transforms_(std::move(transforms)),
      analysis_(path_of("analysis")),
      filter_(add<SpectralConv>("filter", options, transforms_.to)) {}

SpectralFilter::Result SpectralFilter::forward(const at::Tensor& x_BCHW) const {
  const auto body = [from = transforms_.from, to = transforms_.to, changes = transforms_.changes_grid()](const Tensors& in) {
    const at::Tensor coefficients_BCLM = from->analyse(in.at(0));
    return Tensors{at::view_as_real(coefficients_BCLM), changes ? to->synthesise(coefficients_BCLM) : in.at(0)};
  };
  const Tensors analysed = analysis_({x_BCHW}, body);
  return {.filtered = filter_->forward(analysed.at(0)), .residual = analysed.at(1)};
}

SfnoBlock::SfnoBlock(std::string path, const SfnoOptions& options, const SphericalPair& transforms, double drop_path)
    : Layer(std::move(path)), whole_(this->path()) {
  const int64_t width = options.embed_dim;
  norm0_ = add<InstanceNorm>("norm0", width);
  filter_ = add<SpectralFilter>("filter", options, transforms);
  norm1_ = add<InstanceNorm>("norm1", width);
  outer_skip_ =
      add<PointwiseConv>("outer_skip", PointwiseConv::Options{.in = width, .out = width, .with_bias = false, .gain = kHalf});
  mlp_ = add<PointwiseMlp>("mlp", PointwisePair::Options{.in = width, .hidden = options.mlp_width, .out = width, .gain = kHalf});
  drop_path_ = add<DropPath>("drop_path", drop_path);
}

at::Tensor SfnoBlock::forward(const at::Tensor& x_BCHW, const ForwardContext& context) const {
  return whole_({x_BCHW}, [this, context](Tensors in) { return Tensors{transform(in.at(0), context)}; }).at(0);
}

at::Tensor SfnoBlock::transform(const at::Tensor& x_BCHW, const ForwardContext& context) const {
  const SpectralFilter::Result from = filter_->forward(x_BCHW);
  const at::Tensor expanded = mlp_->forward(at::gelu(norm0_->forward(from.filtered)));
  return drop_path_->forward(norm1_->forward(expanded), context).add(outer_skip_->forward(from.residual));
}

std::vector<Site*> SfnoBlock::sites() {
  std::vector<Site*> sites{&whole_};
  for (Layer* layer : std::initializer_list<Layer*>{filter_.get(), norm0_.get(), mlp_.get(), norm1_.get(), outer_skip_.get()}) {
    const std::vector<Site*> more = layer->sites();
    sites.insert(sites.end(), more.begin(), more.end());
  }
  return sites;
}

}  // namespace welkin::model
