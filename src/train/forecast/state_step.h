// SPDX-License-Identifier: Apache-2.0
// From the states that a prediction was made of to those of the next step: history moves by one, and the prediction becomes the
// newest state, in the order of the input's channels.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "config/schema/run_config.h"
#include "data/sample/dataset.h"

namespace welkin::train {

class StateStep {
 public:
  // `num_computed`: the last channels of the input, which no state holds. ConfigError where several steps are asked for and a
  // state needs what no prediction gives: a channel, or steps between (history above 1 with dt above 1).
  StateStep(const data::SampleSpec& spec, const config::RunConfig& config, int64_t num_computed, int64_t steps);

  int64_t state_channels() const { return state_channels_; }  // of one time
  int64_t history() const { return history_; }

  // states (B, history * C, H, W) and prediction (B, C', H, W), normalised -> (B, history * C, H, W).
  at::Tensor next(const at::Tensor& states, const at::Tensor& prediction) const;

 private:
  int64_t history_, state_channels_;
  std::vector<int64_t> predicted_;  // for each channel of a state that of the prediction
};

}  // namespace welkin::train
