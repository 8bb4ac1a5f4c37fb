// SPDX-License-Identifier: Apache-2.0
// The next input of a model from its prediction: predicted channels take the prediction; channels that are known in advance
// (forcing, static, computed) take the data's values at the next step's time; earlier input steps move by one.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <vector>

#include "config/schema/run_config.h"
#include "data/sample/dataset.h"

namespace welkin::train {

class StateFeed {
 public:
  // `spec` is that of one model step. ConfigError for samples whose input is no earlier state of the target.
  StateFeed(const data::SampleSpec& spec, const config::RunConfig& config, c10::Device device);

  // Checks that a prediction determines the whole next input. ConfigError if an input is neither predicted nor known in
  // advance, if input and target of a channel are transformed differently, and for history of more than one step with a lead of
  // more than one.
  void check_next(const data::SampleSpec& spec, const config::RunConfig& config) const;

  int64_t input_channels() const { return input_channels_; }
  int64_t target_channels() const { return target_channels_; }
  int64_t known_channels() const { return known_channels_; }

  // (B, known channels, ...) of an input (B, C, ...).
  at::Tensor known_of(const at::Tensor& input) const;
  // `input` (B, C, ...) of a step; `prediction` and `target` (B, C', ...) of the same step: the target is NaN at points without
  // a value; `known` (B, known channels, ...) of the next step. Differentiable in input and prediction.
  at::Tensor next(const at::Tensor& input, const at::Tensor& prediction, const at::Tensor& known, const at::Tensor& target) const;
  // `input` (B, C, ...) with the channels that are known in advance taken from `data` (of the same shape).
  at::Tensor with_known_of(const at::Tensor& input, const at::Tensor& data) const;
  // The input with `noise` (B, C', ...), in standard deviations of each channel, added to the newest predicted channels, except
  // where the target has no value.
  at::Tensor disturbed(const at::Tensor& input, const at::Tensor& noise, const at::Tensor& target) const;

 private:
  void make_order(const data::SampleSpec& spec, c10::Device device);
  at::Tensor of_targets(const std::vector<double>& of_inputs, double otherwise, const data::SampleSpec& spec,
                        c10::Device device) const;

  std::vector<int64_t> fed_;    // the input channel of each target channel; -1: none
  std::vector<int64_t> known_;  // input channels
  int64_t input_channels_, target_channels_, known_channels_, newest_, history_;
  bool has_holes_;
  at::Tensor order_;        // order of the newest channels out of predicted and known ones; undefined: as they come
  at::Tensor known_index_;  // (known channels) int64; undefined: none
  at::Tensor fill_;         // (C', 1, ...): values for points without a value; undefined: 0
  at::Tensor spread_;       // (C', 1, ...): standard deviations of the channels that are fed; undefined: 1
};

}  // namespace welkin::train
