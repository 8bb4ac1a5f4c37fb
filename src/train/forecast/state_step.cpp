// SPDX-License-Identifier: Apache-2.0
#include "train/forecast/state_step.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "core/text.h"
#include "data/pipeline/sample_check.h"
#include "data/sample/sequences.h"
#include "data/sample/state_transform.h"

namespace welkin::train {

StateStep::StateStep(const data::FieldStates& fields, const config::RunConfig& config, c10::Device device, int64_t steps)
    : fields_(fields),
      device_(device),
      history_(config.data.history),
      has_holes_(data::nan_policy_for(fields.spec(), config.data.nan_policy) == data::NanPolicy::Hole) {
  const data::SampleSpec& spec = fields.spec();
  const std::vector<int64_t> known = data::known_channels(spec);
  for (int64_t channel = 0; channel < fields.state_channels(); ++channel) {
    if (std::ranges::count(known, spec.newest_input_channel + channel) == 0) free_.push_back(channel);
  }
  if (steps == 1) return;
  check_next(config, steps);
  feed_.emplace(spec, config, device);
}

void StateStep::check_next(const config::RunConfig& config, int64_t steps) const {
  if (config.data.history > 1 && config.data.dt > 1) {
    throw ConfigError("forecast",
                      cat("every input step of the next prediction has to be predicted: history=", config.data.history,
                          ", dt=", config.data.dt),
                      "Ask for one step, or train with history 1 or with dt 1");
  }
  const data::SampleSpec& spec = fields_.spec();
  const std::vector<int64_t> earlier = data::earlier_channels(spec);
  data::check_same_transforms(spec, earlier, "forecast", "a prediction is not the input of the next step");
  for (const int64_t channel : free_) {
    if (std::ranges::count(earlier, spec.newest_input_channel + channel) > 0) continue;
    throw ConfigError("forecast",
                      cat("the next step needs a channel that is not predicted: channel=",
                          spec.input.channels[static_cast<size_t>(spec.newest_input_channel + channel)], ", steps=", steps),
                      "Ask for one step, or train a model that predicts every state of its input; what is known in advance "
                      "is forcing: roles: [NAME=forcing]");
  }
}

at::Tensor StateStep::holes(int64_t start_seconds) const {
  if (!has_holes_) return {};
  const auto& shape = fields_.spec().target.shape;
  at::Tensor truth = at::empty({1, shape[0], shape[1], shape[2]}, at::kFloat);
  const int64_t index = fields_.index_of(start_seconds).value();
  const auto plane = static_cast<size_t>(shape[1] * shape[2]);
  for (int64_t channel = 0; channel < shape[0]; ++channel) {
    if (!fields_.has_truth(channel)) {  // the files do not say where it has no value
      truth.select(1, channel).zero_();
      continue;
    }
    fields_.read_truth(index, channel, {truth.data_ptr<float>() + static_cast<size_t>(channel) * plane, plane});
  }
  const at::Tensor is_hole = truth.isnan();
  if (!is_hole.any().item<bool>()) return {};
  return truth.zero_().masked_fill_(is_hole, std::numeric_limits<float>::quiet_NaN()).to(device_);
}

at::Tensor StateStep::next(const at::Tensor& input, const at::Tensor& prediction, int64_t seconds,
                           const at::Tensor& holes) const {
  const int64_t count = feed_->known_channels();
  at::Tensor known = at::empty({1, count, input.size(2), input.size(3)}, at::kFloat);
  fields_.fill_known(seconds, {known.data_ptr<float>(), static_cast<size_t>(known.numel())});
  known = known.to(device_).expand({input.size(0), -1, -1, -1});
  if (!fields_.kept_known().empty()) known = known.contiguous();
  for (const size_t place : fields_.kept_known()) {
    known.select(1, static_cast<int64_t>(place)).copy_(input.select(1, fields_.spec().known_input[place]));
  }
  return feed_->next(input, prediction, known, holes.defined() ? holes : at::zeros_like(prediction));
}

}  // namespace welkin::train
