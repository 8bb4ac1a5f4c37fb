// SPDX-License-Identifier: Apache-2.0
// From the input that a prediction was made of to that of the next step: StateFeed with what the files and the calendar say of
// the time that was predicted.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "config/schema/run_config.h"
#include "data/forecast/field_states.h"
#include "train/rollout/state_feed.h"

namespace welkin::train {

class StateStep {
 public:
  // `fields` outlives it. ConfigError where several steps are asked for and an input needs what nobody gives: a channel, or steps
  // between (history above 1 with dt above 1), or where input and target of a channel are transformed differently.
  StateStep(const data::FieldStates& fields, const config::RunConfig& config, c10::Device device, int64_t steps);

  const data::FieldStates& fields() const { return fields_; }
  int64_t history() const { return history_; }
  bool has_holes() const { return has_holes_; }
  // Channels of one state that are not known in advance: those that a perturbation changes. Places in a state, (C) of them.
  const std::vector<int64_t>& free_channels() const { return free_; }

  // (1, C', H, W) on the device: NaN at points that have no value at that start, 0 at others; undefined where all have one.
  at::Tensor holes(int64_t start_seconds) const;
  // input (B, C, H, W) and prediction (B, C', H, W), normalised, of the state at `seconds` -> the input of the step after it.
  // DataError where forcing channels of that time are not in the files.
  at::Tensor next(const at::Tensor& input, const at::Tensor& prediction, int64_t seconds, const at::Tensor& holes) const;

 private:
  void check_next(const config::RunConfig& config, int64_t steps) const;

  const data::FieldStates& fields_;
  c10::Device device_;
  int64_t history_;
  bool has_holes_;
  std::vector<int64_t> free_;
  std::optional<StateFeed> feed_;  // of several steps
};

}  // namespace welkin::train
