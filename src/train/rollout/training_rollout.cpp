// SPDX-License-Identifier: Apache-2.0
#include "train/rollout/training_rollout.h"

#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>

#include <utility>
#include <vector>

#include "core/philox.h"
#include "train/rollout/input_noise.h"

namespace welkin::train {
namespace {

// The seed of dropout's masks: each step of the model draws its own.
uint64_t seed_of_lead(uint64_t seed, int64_t lead) {
  constexpr uint64_t kTag = 0x6c656164;  // "lead"
  if (lead == 1) return seed;
  const PhiloxBlock draw = philox(seed, static_cast<uint64_t>(lead), kTag);
  return (uint64_t{draw[1]} << 32) | draw[0];
}

}  // namespace

TrainingRollout::TrainingRollout(const data::SampleSpec& spec, const config::RunConfig& config,
                                 std::optional<data::Region> region, c10::Device device)
    : feed_(spec, config, device),
      grid_(spec.target.shape.begin() + 1, spec.target.shape.end()),
      region_(region),
      noise_(config.loss.input_noise),
      only_last_(config.loss.multistep_gradient == config::MultistepGradient::Last),
      members_(config.loss.ensemble_members) {
  if (config.loss.multistep.most() > 1) feed_.check_next(spec, config);
}

at::Tensor TrainingRollout::losses(const at::Tensor& input, const at::Tensor& target, const model::ForwardContext& context,
                                   const StepOfModel& step, const PredictionHook& on_first) const {
  if (members_ > 1 && at::GradMode::is_enabled()) return ensemble_losses(input, target, context, step, on_first);
  const int64_t steps = steps_of(target);
  at::Tensor sum;
  walk(start(input, target, context), input, target, context, step,
       [&](int64_t lead, const at::Tensor& prediction, const at::Tensor& of_lead) {
         if (lead == 1 && on_first) on_first(prediction);
         if (only_last_ && lead < steps) return;
         const at::Tensor losses = step.losses(prediction, of_lead);
         sum = sum.defined() ? sum + losses : losses;
       });
  return only_last_ || steps == 1 ? sum : sum / steps;
}

at::Tensor TrainingRollout::ensemble_losses(const at::Tensor& input, const at::Tensor& target,
                                            const model::ForwardContext& context, const StepOfModel& step,
                                            const PredictionHook& on_first) const {
  const int64_t steps = steps_of(target);
  std::vector<std::vector<at::Tensor>> of_lead(static_cast<size_t>(steps));
  for (int64_t member = 0; member < members_; ++member) {
    if (member > 0) at::autocast::clear_cache();  // as between the steps of a walk
    const model::ForwardContext own = context_of_member(context, member);
    walk(start(input, target, own), input, target, own, step, [&](int64_t lead, const at::Tensor& prediction, const at::Tensor&) {
      if (member == 0 && lead == 1 && on_first) on_first(prediction);
      of_lead[static_cast<size_t>(lead - 1)].push_back(prediction);
    });
  }
  at::Tensor sum;
  for (int64_t lead = only_last_ ? steps : 1; lead <= steps; ++lead) {
    const at::Tensor losses = score(of_lead[static_cast<size_t>(lead - 1)], target_of(target, lead), step.losses);
    sum = sum.defined() ? sum + losses : losses;
  }
  return only_last_ || steps == 1 ? sum : sum / steps;
}

at::Tensor TrainingRollout::outputs(const at::Tensor& input, const at::Tensor& target, const model::ForwardContext& context,
                                    const StepOfModel& step) const {
  at::Tensor sum;
  for (int64_t member = 0; member < members_; ++member) {
    walk(first_input(input), input, target, context, step,
         [&](int64_t /*lead*/, const at::Tensor& prediction, const at::Tensor&) {
           sum = sum.defined() ? sum + prediction.sum() : prediction.sum();
         });
  }
  return sum;
}

// Walks from lead to lead. If only the last lead has a loss, the predictions before it have no gradient.
void TrainingRollout::walk(at::Tensor input, const at::Tensor& all_input, const at::Tensor& target,
                           const model::ForwardContext& context, const StepOfModel& step, const Visit& visit) const {
  const int64_t steps = steps_of(target);
  for (int64_t lead = 1; lead <= steps; ++lead) {
    const at::AutoGradMode with_graph(at::GradMode::is_enabled() && !(only_last_ && lead < steps));
    const at::Tensor prediction = step.forward(input, context_of(context, lead));
    visit(lead, prediction, target_of(target, lead));
    if (lead == steps) return;
    at::autocast::clear_cache();  // cached casts of weights would sum the gradients of all steps in the low type
    input = next(input, prediction, all_input, target, lead);
  }
}

at::Tensor TrainingRollout::next(const at::Tensor& input, const at::Tensor& prediction, const at::Tensor& samples,
                                 const at::Tensor& target, int64_t lead) const {
  const int64_t known = feed_.known_channels();
  const at::Tensor next_known = samples.narrow(1, feed_.input_channels() + (lead - 1) * known, known);
  return feed_.next(input, prediction, next_known, target_of(target, lead));
}

at::Tensor TrainingRollout::target_of(const at::Tensor& target, int64_t lead) const {
  return target.narrow(1, (lead - 1) * feed_.target_channels(), feed_.target_channels());
}

model::ForwardContext TrainingRollout::context_of(const model::ForwardContext& first, int64_t lead) {
  model::ForwardContext own = first;
  own.seed = seed_of_lead(first.seed, lead);
  return own;
}

// Each member has its own masks and noise; the first member has those of a run without members.
model::ForwardContext TrainingRollout::context_of_member(const model::ForwardContext& first, int64_t member) {
  constexpr uint64_t kTag = 0x6d656d62;  // "memb"
  model::ForwardContext own = first;
  if (member == 0) return own;
  const PhiloxBlock draw = philox(first.seed, static_cast<uint64_t>(member), kTag);
  own.seed = (uint64_t{draw[1]} << 32) | draw[0];
  return own;
}

// Fair: over pairs of different members. A point without a value in the target has none in the members either.
at::Tensor TrainingRollout::score(const std::vector<at::Tensor>& members, const at::Tensor& target,
                                  const LossesOfPrediction& losses) {
  if (members.size() == 1) return losses(members.front(), target);
  const auto count = static_cast<double>(members.size());
  at::Tensor error, spread;
  for (size_t i = 0; i < members.size(); ++i) {
    const at::Tensor of_member = losses(members[i], target);
    error = error.defined() ? error + of_member : of_member;
    for (size_t j = 0; j < i; ++j) {
      const at::Tensor of_pair = losses(members[i], members[j] + target.mul(0));
      spread = spread.defined() ? spread + of_pair : of_pair;
    }
  }
  return error / count - spread / (count * (count - 1));
}

// Draws noise for the whole sample and takes this rank's part: every layout has the same numbers.
at::Tensor TrainingRollout::start(const at::Tensor& input, const at::Tensor& target, const model::ForwardContext& context) const {
  at::Tensor first = first_input(input);
  if (noise_ == 0 || !at::GradMode::is_enabled()) return first.contiguous(input.suggest_memory_format());
  std::vector<int64_t> shape = grid_;
  shape.insert(shape.begin(), feed_.target_channels());
  at::Tensor noise = standard_normals({.seed = context.seed, .step = context.step, .sample = context.sample}, shape);
  for (size_t a = 0; region_ && a < grid_.size(); ++a) {
    noise = noise.narrow(2 + static_cast<int64_t>(a), region_->begin[a], region_->extent[a]);
  }
  return feed_.disturbed(first, noise.to(first.scalar_type()).mul(noise_), first_target(target));
}

}  // namespace welkin::train
