// SPDX-License-Identifier: Apache-2.0
#include "train/learn/precision.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_amp_update_scale.h>
#include <ATen/ops/full.h>
#include <ATen/ops/le.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/zeros.h>

namespace welkin::train {

std::optional<at::ScalarType> autocast_dtype(config::AmpMode mode) {
  if (mode == config::AmpMode::None) return std::nullopt;
  return mode == config::AmpMode::Bf16 ? at::kBFloat16 : at::kHalf;
}

LossScaler::LossScaler(const config::PrecisionConfig& config, c10::Device device)
    : config_(config),
      enabled_(config.amp_mode == config::AmpMode::Fp16),
      scale_(at::full({}, enabled_ ? config.loss_scale : 1.0, at::TensorOptions(at::kFloat).device(device))),
      clean_steps_(at::zeros({}, at::TensorOptions(at::kInt).device(device))) {}

at::Tensor LossScaler::scaled(const at::Tensor& loss) const { return enabled_ ? loss * scale_ : loss; }

at::Tensor LossScaler::inverse() const { return at::reciprocal(scale_); }

void LossScaler::update(const at::Tensor& found_inf) {
  if (!enabled_) return;
  at::_amp_update_scale_(scale_, clean_steps_, found_inf, config_.loss_scale_factor, 1 / config_.loss_scale_factor,
                         config_.loss_scale_window);
  scale_.clamp_min_(config_.loss_scale_min);
}

at::Tensor LossScaler::at_minimum() const { return at::le(scale_, config_.loss_scale_min); }

std::vector<NamedState> LossScaler::states() { return {{"loss_scale", scale_}, {"loss_scale_clean_steps", clean_steps_}}; }

}  // namespace welkin::train
