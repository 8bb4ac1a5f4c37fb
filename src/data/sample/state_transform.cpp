// SPDX-License-Identifier: Apache-2.0
#include "data/sample/state_transform.h"

#include "core/error.h"
#include "core/text.h"
#include "data/storage/channel_op.h"

namespace welkin::data {
namespace {

std::string clip_text(const std::vector<double>& clip) { return clip.empty() ? "none" : cat("[", join(clip, ", "), "]"); }

std::string log_text(float eps) { return eps == 0 ? "none" : cat("ln(1 + x / ", eps, ")"); }

ChannelOp op_of(const ArrayTransform& transform, int64_t channels, int64_t channel, const char* name) {
  return channel_ops(transform, channels, name)[static_cast<size_t>(channel)];
}

}  // namespace

std::string difference_of_transforms(const SampleSpec& spec, int64_t target, int64_t input) {
  const ChannelOp in = op_of(input_transform(spec), spec.input.shape.front(), input, "input");
  const ChannelOp out = op_of(target_transform(spec), spec.target.shape.front(), target, "target");
  std::vector<std::string> differences;
  if (in.low != out.low || in.high != out.high)
    differences.push_back(cat("clip_in=", clip_text(spec.input_clip), ", clip_out=", clip_text(spec.target_clip)));
  if (in.log != out.log) {
    differences.push_back(cat("logarithm of the input (log_channels_in)=", log_text(in.log),
                              ", of the target (log_channels_out)=", log_text(out.log)));
  }
  if (in.mean != out.mean || in.std != out.std) {
    differences.push_back(
        cat("mean and deviation of the input=", in.mean, " and ", in.std, ", of the target=", out.mean, " and ", out.std));
  }
  return join(differences, ", ");
}

void check_same_transforms(const SampleSpec& spec, const std::vector<int64_t>& inputs, const char* component, const char* what) {
  constexpr size_t kMostNamed = 3;
  std::vector<std::string> found;
  for (size_t c = 0; c < inputs.size() && found.size() < kMostNamed; ++c) {
    if (inputs[c] < 0) continue;
    const std::string difference = difference_of_transforms(spec, static_cast<int64_t>(c), inputs[c]);
    if (!difference.empty()) found.push_back(cat("channel=", spec.target.channels[c], ", ", difference));
  }
  if (found.empty()) return;
  throw ConfigError(component, cat(what, ", input and target of a channel are transformed differently: ", join(found, "; ")),
                    "Train with the same clip_in and clip_out, and the same channels in log_channels_in and log_channels_out");
}

bool follows_from_input(const SampleSpec& spec) {
  if (spec.input_clip.empty()) return true;
  return !spec.target_clip.empty() && spec.target_clip.front() >= spec.input_clip.front() &&
         spec.target_clip.back() <= spec.input_clip.back();
}

}  // namespace welkin::data
