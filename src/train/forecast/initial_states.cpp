// SPDX-License-Identifier: Apache-2.0
#include "train/forecast/initial_states.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/square.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include "train/forecast/model_step.h"
#include "train/learn/metrics.h"

namespace welkin::train {
namespace {

// Steps of breeding draw other masks of dropout than those of the forecast.
constexpr int64_t kFirstBreedingStep = int64_t{1} << 30;

}  // namespace

int64_t InitialStates::history_needed(int64_t members) const {
  if (start_.perturbation.kind == PerturbationKind::Lagged) return members - 1;
  return start_.perturbation.kind == PerturbationKind::Bred ? start_.perturbation.cycles : 0;
}

at::Tensor InitialStates::read(const TrainedModel& model, int64_t seconds) const {
  const data::SampleSpec& spec = fields_.spec();
  const int64_t index = fields_.index_of(seconds).value();
  at::Tensor input = at::empty({1, spec.input.shape[0], spec.input.shape[1], spec.input.shape[2]}, at::kFloat);
  fields_.read(fields_.plan({.index = index}, data::whole(spec)),
               {.input = {input.data_ptr<float>(), static_cast<size_t>(input.numel())}, .target = {}, .transformed = true});
  return input.narrow(1, 0, step_.history() * step_.state_channels()).to(model.device());
}

// (B, history * C, H, W): the same field at every step of history.
at::Tensor InitialStates::noise(int64_t start_seconds, const std::vector<int64_t>& members) const {
  std::vector<at::Tensor> fields;
  for (const int64_t member : members) {
    const at::Tensor field =
        member_noise(start_.perturbation, fields_.spec(), step_.state_channels(), start_.seed, start_seconds, member);
    fields.push_back(start_.has_control && member == 0 ? at::zeros_like(field) : field);
  }
  return at::stack(fields).repeat({1, step_.history(), 1, 1});
}

at::Tensor InitialStates::make(const TrainedModel& model, int64_t start_seconds, const std::vector<int64_t>& members) const {
  const int64_t before = steps_before(members.front());
  at::Tensor state =
      read(model, fields_.valid_time(start_seconds, -before)).expand({static_cast<int64_t>(members.size()), -1, -1, -1});
  if (start_.perturbation.is_noise()) return state + noise(start_seconds, members).to(model.device());
  if (start_.perturbation.kind == PerturbationKind::Bred) return state + bred(model, start_seconds, members);
  return state;
}

// Its newest state has the amplitude as root mean square over the points, by area, and the channels.
at::Tensor InitialStates::rescaled_difference(const at::Tensor& difference) const {
  const data::SampleSpec& spec = fields_.spec();
  const at::Tensor weights = latitude_weights(spec.input.shape[1], spec.latitude).to(difference.options()).view({1, 1, -1, 1});
  const int64_t channels = step_.state_channels();
  const at::Tensor newest = difference.narrow(1, (step_.history() - 1) * channels, channels);
  const at::Tensor size = at::sqrt((at::square(newest) * weights).mean({1, 2, 3}, true));
  return at::where(size.gt(0), difference * (start_.perturbation.amplitude / size), at::zeros({}, difference.options()));
}

at::Tensor InitialStates::bred(const TrainedModel& model, int64_t start_seconds, const std::vector<int64_t>& members) const {
  const int64_t cycles = start_.perturbation.cycles;
  at::Tensor difference = rescaled_difference(noise(start_seconds, members).to(model.device()));
  for (int64_t cycle = 0; cycle < cycles; ++cycle) {
    const int64_t valid = fields_.valid_time(start_seconds, cycle + 1 - cycles);
    const at::Tensor state = read(model, fields_.valid_time(start_seconds, cycle - cycles)).expand_as(difference);
    const MemberKeys keys{.start_seconds = start_seconds, .members = members, .step = kFirstBreedingStep + cycle};
    const auto after = [&](const at::Tensor& states) {
      return step_.next(states, predict_step(model, fields_, states, valid, keys));
    };
    difference = rescaled_difference(after(state + difference) - after(state.contiguous()));
  }
  return difference;
}

}  // namespace welkin::train
