// SPDX-License-Identifier: Apache-2.0
#include "train/evaluate/persistence.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/stack.h>

#include <limits>
#include <vector>

#include "data/sample/sequences.h"
#include "data/sample/state_transform.h"

namespace welkin::train {
namespace {

// Undoes the input's transform and applies the target's.
at::Tensor converted(const at::Tensor& values, const data::ChannelOp& input, const data::ChannelOp& target) {
  at::Tensor wide = values.to(at::kDouble).mul(input.std).add_(input.mean);
  if (input.log != 0) wide.expm1_().mul_(input.log);
  wide.clamp_(target.low, target.high);
  if (target.log != 0) wide.div_(target.log).log1p_();
  return wide.sub_(target.mean).div_(target.std).to(values.scalar_type());
}

}  // namespace

bool has_persistence(const data::SampleSpec& spec) { return data::is_state_of_target(spec); }

Persistence::Persistence(const data::SampleSpec& spec) {
  const auto inputs = data::channel_ops(data::input_transform(spec), spec.input.shape.front(), "input");
  const auto targets = data::channel_ops(data::target_transform(spec), spec.target.shape.front(), "target");
  const std::vector<int64_t> earlier = data::earlier_channels(spec);
  const bool is_defined = data::follows_from_input(spec);
  for (size_t c = 0; c < earlier.size(); ++c) {
    Channel& channel = channels_.emplace_back();
    if (!is_defined || earlier[c] < 0) continue;
    channel.from = earlier[c];
    if (data::difference_of_transforms(spec, static_cast<int64_t>(c), earlier[c]).empty()) continue;
    channel.conversion = {.input = inputs[static_cast<size_t>(earlier[c])], .target = targets[c]};
  }
}

at::Tensor Persistence::of(const at::Tensor& input) const {
  std::vector<at::Tensor> channels;
  for (const auto& [from, conversion] : channels_) {
    if (from < 0) {
      channels.push_back(at::full_like(input.select(1, 0), std::numeric_limits<double>::quiet_NaN()));
      continue;
    }
    const at::Tensor state = input.select(1, from);
    channels.push_back(conversion ? converted(state, conversion->input, conversion->target) : state);
  }
  return at::stack(channels, 1);
}

}  // namespace welkin::train
