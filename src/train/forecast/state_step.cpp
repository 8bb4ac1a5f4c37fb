// SPDX-License-Identifier: Apache-2.0
#include "train/forecast/state_step.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "train/evaluate/scores.h"

namespace welkin::train {

StateStep::StateStep(const data::SampleSpec& spec, const config::RunConfig& config, int64_t num_computed, int64_t steps)
    : history_(config.data.history), state_channels_((spec.input.shape.at(0) - num_computed) / config.data.history) {
  if (steps == 1) return;
  if (config.data.history > 1 && config.data.dt > 1) {
    throw ConfigError("forecast",
                      cat("every input step of the next prediction has to be predicted: history=", config.data.history,
                          ", dt=", config.data.dt),
                      "Ask for one step, or train with history 1 or with dt 1");
  }
  const std::vector<int64_t> earlier = earlier_channels(spec);
  for (int64_t channel = 0; channel < state_channels_; ++channel) {
    const auto found = std::ranges::find(earlier, spec.newest_input_channel + channel);
    if (found == earlier.end()) {
      throw ConfigError("forecast",
                        cat("the next step needs a channel that is not predicted: channel=",
                            spec.input.channels[static_cast<size_t>(spec.newest_input_channel + channel)], ", steps=", steps),
                        "Ask for one step, or train a model that predicts every state of its input; what is known in advance "
                        "belongs to forcing");
    }
    predicted_.push_back(found - earlier.begin());
  }
}

at::Tensor StateStep::next(const at::Tensor& states, const at::Tensor& prediction) const {
  at::Tensor newest = prediction.index_select(1, at::tensor(predicted_, prediction.options().dtype(at::kLong)));
  if (history_ == 1) return newest;
  return at::cat({states.narrow(1, state_channels_, (history_ - 1) * state_channels_), newest}, 1);
}

}  // namespace welkin::train
