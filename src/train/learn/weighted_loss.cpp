// SPDX-License-Identifier: Apache-2.0
#include "train/learn/weighted_loss.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <utility>

#include "core/error.h"
#include "core/text.h"
#include "data/pipeline/sample_check.h"
#include "train/learn/channel_weights.h"
#include "train/learn/loss_terms.h"
#include "train/learn/metrics.h"

namespace welkin::train {
namespace {

class WeightedLoss : public Loss {
 public:
  WeightedLoss(LossPtr loss, ElementWeights weights) : loss_(std::move(loss)), weights_(std::move(weights)) {}

  at::Tensor partial(const at::Tensor& prediction, const at::Tensor& target) const override {
    return partial_from(0, prediction, target);
  }

  // The columns of the loss, and the sum of all weights.
  at::Tensor partial_from(int64_t row, const at::Tensor& prediction, const at::Tensor& target) const override {
    at::Tensor p = widen(prediction), t = widen(target);
    at::Tensor weight = weight_of(row, t);
    if (weights_.holes) {
      const at::Tensor is_hole = at::isnan(t);
      weight = weight.expand_as(t).masked_fill(is_hole, 0);
      p = p.masked_fill(is_hole, 0), t = t.masked_fill(is_hole, 0);
    }
    const at::Tensor total = weight.expand_as(t).flatten(1).sum(1, /*keepdim=*/true);
    return at::cat({loss_->weighted_partial(p, t, weight), total}, 1);
  }

  // No pass, forward or backward, divides by a weight of 0.
  at::Tensor finish(const at::Tensor& sums) const override {
    const int64_t columns = sums.size(1) - 1;
    const at::Tensor has_points = sums.narrow(1, columns, 1).gt(0), own = sums.narrow(1, 0, columns);
    const at::Tensor losses = loss_->finish(at::where(has_points, own, at::ones_like(own)));
    return at::where(has_points.squeeze(1), losses, at::zeros_like(losses));
  }

 private:
  // (1, C or 1, H or 1, 1...): weights for the rows of `target`.
  at::Tensor weight_of(int64_t row, const at::Tensor& target) const {
    std::vector<int64_t> sizes(static_cast<size_t>(target.dim()), 1);
    at::Tensor weight = at::ones(sizes, target.options().requires_grad(false));
    if (weights_.channels.defined()) {
      sizes[1] = weights_.channels.size(0);
      weight = weights_.channels.to(target.scalar_type()).view(sizes);
      sizes[1] = 1;
    }
    if (weights_.rows.defined()) {
      sizes[2] = target.size(2);
      weight = weight * weights_.rows.narrow(0, row, target.size(2)).to(target.scalar_type()).view(sizes);
    }
    return weight;
  }

  LossPtr loss_;
  ElementWeights weights_;
};

}  // namespace

ElementWeights element_weights(const config::RunConfig& config, const data::SampleSpec& spec, c10::Device device) {
  ElementWeights weights;
  weights.holes = data::nan_policy_for(spec, config.data.nan_policy) == data::NanPolicy::Hole;
  const std::vector<double> channels = channel_weights(config.loss, spec.target.channels);
  if (!channels.empty()) weights.channels = at::tensor(channels, at::kDouble).to(device);
  if (config.loss.latitude_weights && spec.target.shape.size() == 3) {
    weights.rows = row_weights(spec).to(device);
  }
  return weights;
}

LossPtr weighted_loss(LossPtr loss, ElementWeights weights, const std::string& name) {
  if (!weights.any()) return loss;
  if (!loss->takes_weights()) {
    throw ConfigError("loss",
                      cat("this loss takes no weights: loss=", name,
                          ", wanted=", weights.holes ? "none for points without a value" : "weights of channels or latitudes"),
                      "Choose relative_l2, l1_rho, mse, mae or huber, or give the plug-in's loss weighted_partial() (loss.h)");
  }
  return std::make_unique<WeightedLoss>(std::move(loss), std::move(weights));
}

LossPtr make_loss(const LossFactory& factory, const config::RunConfig& config, const data::SampleSpec& spec, c10::Device device) {
  LossPtr loss = weighted_loss(factory(config), element_weights(config, spec, device), config.loss.loss);
  return with_terms(std::move(loss), loss_terms(config, spec, device));
}

}  // namespace welkin::train
