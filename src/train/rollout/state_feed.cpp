// SPDX-License-Identifier: Apache-2.0
#include "train/rollout/state_feed.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <string>

#include "core/error.h"
#include "core/text.h"
#include "data/pipeline/sample_check.h"
#include "data/sample/sequences.h"
#include "data/sample/state_transform.h"

namespace welkin::train {

StateFeed::StateFeed(const data::SampleSpec& spec, const config::RunConfig& config, c10::Device device)
    : fed_(data::earlier_channels(spec)),
      known_(data::known_channels(spec)),
      input_channels_(spec.input.shape.at(0)),
      target_channels_(spec.target.shape.at(0)),
      known_channels_(static_cast<int64_t>(known_.size())),
      newest_(spec.newest_input_channel),
      history_(config.data.history),
      has_holes_(data::nan_policy_for(spec, config.data.nan_policy) == data::NanPolicy::Hole) {
  if (!data::is_state_of_target(spec)) {
    throw ConfigError("rollout", cat("the input is no earlier state of the target: model=", config.model.model),
                      "Only forecasts of fields in time can be rolled out");
  }
  make_order(spec, device);
}

// Checks that every input channel of the newest step is predicted, or known at any time.
void StateFeed::check_next(const data::SampleSpec& spec, const config::RunConfig& config) const {
  std::vector<std::string> unknown;
  for (int64_t c = newest_; c < input_channels_; ++c) {
    if (std::ranges::count(fed_, c) + std::ranges::count(known_, c) == 0) {
      unknown.push_back(spec.input.channels[static_cast<size_t>(c)]);
    }
  }
  if (!unknown.empty()) {
    throw ConfigError(
        "rollout",
        cat("the prediction is not the next input, some of its channels are not predicted: channels=", join(unknown, " ")),
        "Predict them as well, or say that they are known in advance: roles: [NAME=forcing]");
  }
  data::check_same_transforms(spec, fed_, "rollout", "the prediction is not the next input");
  if (config.data.history > 1 && config.data.dt > 1) {
    throw ConfigError(
        "rollout",
        cat("a rollout needs every input step to be predicted: history=", config.data.history, ", dt=", config.data.dt),
        "Train with history 1, or with dt 1");
  }
}

void StateFeed::make_order(const data::SampleSpec& spec, c10::Device device) {
  std::vector<int64_t> order(static_cast<size_t>(input_channels_ - newest_));
  for (size_t c = 0; c < fed_.size(); ++c) {
    if (fed_[c] >= 0) order[static_cast<size_t>(fed_[c] - newest_)] = static_cast<int64_t>(c);
  }
  for (size_t k = 0; k < known_.size(); ++k)
    order[static_cast<size_t>(known_[k] - newest_)] = target_channels_ + static_cast<int64_t>(k);
  const bool comes_so = static_cast<int64_t>(order.size()) == target_channels_ + known_channels_ && std::ranges::is_sorted(order);
  if (!comes_so) order_ = at::tensor(order, at::kLong).to(device);
  if (known_channels_ > 0) known_index_ = at::tensor(known_, at::kLong).to(device);
  if (has_holes_ && !spec.input_fill.empty()) fill_ = of_targets(spec.input_fill, 0, spec, device);
  if (!spec.input_spread.empty()) spread_ = of_targets(spec.input_spread, 1, spec, device);
}

// (C', 1, ...) float32: for each target channel the value in `of_inputs` of the input channel that it becomes.
at::Tensor StateFeed::of_targets(const std::vector<double>& of_inputs, double otherwise, const data::SampleSpec& spec,
                                 c10::Device device) const {
  std::vector<double> values;
  for (const int64_t channel : fed_) values.push_back(channel < 0 ? otherwise : of_inputs[static_cast<size_t>(channel)]);
  std::vector<int64_t> sizes(spec.target.shape.size(), 1);
  sizes.front() = target_channels_;
  return at::tensor(values, at::kFloat).view(sizes).to(device);
}

at::Tensor StateFeed::known_of(const at::Tensor& input) const {
  return known_index_.defined() ? input.index_select(1, known_index_) : input.narrow(1, 0, 0);
}

at::Tensor StateFeed::next(const at::Tensor& input, const at::Tensor& prediction, const at::Tensor& known,
                           const at::Tensor& target) const {
  at::Tensor newest = prediction.to(input.scalar_type());
  if (has_holes_) {
    const at::Tensor is_hole = at::isnan(target);
    newest = fill_.defined() ? at::where(is_hole, fill_.to(newest.scalar_type()), newest) : newest.masked_fill(is_hole, 0);
  }
  if (known_channels_ > 0) newest = at::cat({newest, known}, 1);
  if (order_.defined()) newest = newest.index_select(1, order_);
  if (history_ > 1) newest = at::cat({input.narrow(1, newest_ / (history_ - 1), newest_), newest}, 1);
  return newest.contiguous(input.suggest_memory_format());
}

at::Tensor StateFeed::with_known_of(const at::Tensor& input, const at::Tensor& data) const {
  return known_index_.defined() ? input.index_copy(1, known_index_, known_of(data)) : input;
}

at::Tensor StateFeed::disturbed(const at::Tensor& input, const at::Tensor& noise, const at::Tensor& target) const {
  const at::Tensor of_size = spread_.defined() ? noise * spread_.to(noise.scalar_type()) : noise;
  const at::Tensor at_points = has_holes_ ? of_size.masked_fill(at::isnan(target), 0) : of_size;
  at::Tensor disturbance = at::zeros_like(input);
  for (size_t c = 0; c < fed_.size(); ++c) {
    if (fed_[c] >= 0) disturbance.select(1, fed_[c]).copy_(at_points.select(1, static_cast<int64_t>(c)));
  }
  return input + disturbance;
}

}  // namespace welkin::train
