// SPDX-License-Identifier: Apache-2.0
// A loss with weights per element: channels by name and level, rows by the cosine of their latitude, points without a value 0.
// Such points are NaN in the target, so every rank, crop and micro-batch knows its own. Sums and weights are added over the
// ranks that share a sample, and the finish divides.
#pragma once

#include <c10/core/Device.h>

#include "config/schema/run_config.h"
#include "data/sample/dataset.h"
#include "train/learn/loss.h"

namespace welkin::train {

struct ElementWeights {
  bool holes = false;     // NaN in the target is a point without a value
  at::Tensor channels{};  // (C) float64 on the device; undefined: all alike
  at::Tensor rows{};      // (H) float64 on the device; undefined: all alike

  bool any() const { return holes || channels.defined() || rows.defined(); }
};

// Weights of a run's target: loss.channel_weights, level_weighting and latitude_weights, holes by data.nan_policy.
ElementWeights element_weights(const config::RunConfig& config, const data::SampleSpec& spec, c10::Device device);

// A sample whose elements all have weight 0 has loss 0. ConfigError, naming `name`, if the loss takes no weights.
LossPtr weighted_loss(LossPtr loss, ElementWeights weights, const std::string& name);

// The loss of a run: the loss of `factory`, with weights if the run has any.
LossPtr make_loss(const LossFactory& factory, const config::RunConfig& config, const data::SampleSpec& spec, c10::Device device);

}  // namespace welkin::train
