// SPDX-License-Identifier: Apache-2.0
#include "train/forecast/initial_states.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/square.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <span>

#include "data/pipeline/sample_check.h"
#include "data/sample/sequences.h"
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
  const std::span<float> values(input.data_ptr<float>(), static_cast<size_t>(input.numel()));
  const data::SampleRules rules{.nan = data::nan_policy_for(spec, model.config().data.nan_policy)};
  data::SampleOutcome outcome;
  data::read_checked(fields_, {.index = index}, data::whole(spec), rules, {.input = values, .target = {}, .transformed = true},
                     outcome);
  if (step_.has_holes()) data::fill_holes(values, spec.input.shape[0], spec.input_fill);
  return input.to(model.device());
}

// The spread of a channel of the state, normalised.
double InitialStates::spread_of(int64_t channel) const {
  const data::SampleSpec& spec = fields_.spec();
  return spec.input_spread.empty() ? 1 : spec.input_spread[static_cast<size_t>(spec.newest_input_channel + channel)];
}

// The same field at every step of history.
at::Tensor InitialStates::noise(int64_t start_seconds, const std::vector<int64_t>& members, const at::Tensor& holes) const {
  const data::SampleSpec& spec = fields_.spec();
  const int64_t state_channels = fields_.state_channels();
  at::Tensor noise =
      at::zeros({static_cast<int64_t>(members.size()), spec.input.shape[0], spec.input.shape[1], spec.input.shape[2]});
  for (size_t m = 0; m < members.size(); ++m) {
    if (start_.has_control && members[m] == 0) continue;
    const at::Tensor field = member_noise(start_.perturbation, spec, state_channels, start_.seed, start_seconds, members[m]);
    for (int64_t age = 0; age < step_.history(); ++age) {
      for (const int64_t channel : step_.free_channels()) {
        noise[static_cast<int64_t>(m)][age * state_channels + channel].copy_(field[channel] * spread_of(channel));
      }
    }
  }
  if (!holes.defined()) return noise;
  const std::vector<int64_t> earlier = data::earlier_channels(spec);
  for (size_t c = 0; c < earlier.size(); ++c) {
    if (earlier[c] < 0) continue;
    const at::Tensor is_hole = holes[0][static_cast<int64_t>(c)].isnan().to(at::kCPU);
    for (int64_t age = 0; age < step_.history(); ++age) {
      noise.select(1, age * state_channels + earlier[c] - spec.newest_input_channel).masked_fill_(is_hole, 0);
    }
  }
  return noise;
}

at::Tensor InitialStates::make(const TrainedModel& model, int64_t start_seconds, const std::vector<int64_t>& members,
                               const at::Tensor& holes) const {
  const int64_t before = steps_before(members.front());
  at::Tensor state =
      read(model, fields_.valid_time(start_seconds, -before)).expand({static_cast<int64_t>(members.size()), -1, -1, -1});
  if (start_.perturbation.is_noise()) return state + noise(start_seconds, members, holes).to(model.device());
  if (start_.perturbation.kind == PerturbationKind::Bred) return state + bred(model, start_seconds, members, holes);
  return state;
}

// Its newest state has the amplitude as root mean square over the points, by area, and the channels that are not known in
// advance, each in its standard deviations.
at::Tensor InitialStates::rescaled_difference(const at::Tensor& difference) const {
  const data::SampleSpec& spec = fields_.spec();
  const at::Tensor weights = row_weights(spec).to(difference.options()).view({1, 1, -1, 1});
  std::vector<int64_t> places;
  std::vector<double> spreads;
  for (const int64_t channel : step_.free_channels()) {
    places.push_back(spec.newest_input_channel + channel);
    spreads.push_back(spread_of(channel));
  }
  const at::Tensor spread = at::tensor(spreads, at::kDouble).to(difference.options()).view({1, -1, 1, 1});
  const at::Tensor newest = difference.index_select(1, at::tensor(places, at::kLong).to(difference.device())) / spread;
  const at::Tensor size = at::sqrt((at::square(newest) * weights).mean({1, 2, 3}, true));
  return at::where(size.gt(0), difference * (start_.perturbation.amplitude / size), at::zeros({}, difference.options()));
}

at::Tensor InitialStates::bred(const TrainedModel& model, int64_t start_seconds, const std::vector<int64_t>& members,
                               const at::Tensor& holes) const {
  const int64_t cycles = start_.perturbation.cycles;
  at::Tensor difference = rescaled_difference(noise(start_seconds, members, holes).to(model.device()));
  for (int64_t cycle = 0; cycle < cycles; ++cycle) {
    const int64_t valid = fields_.valid_time(start_seconds, cycle + 1 - cycles);
    const at::Tensor state = read(model, fields_.valid_time(start_seconds, cycle - cycles)).expand_as(difference);
    const MemberKeys keys{
        .seed = start_.seed, .start_seconds = start_seconds, .members = members, .step = kFirstBreedingStep + cycle};
    const auto after = [&](const at::Tensor& input) { return step_.next(input, predict_step(model, input, keys), valid, holes); };
    difference = rescaled_difference(after(state + difference) - after(state.contiguous()));
  }
  return difference;
}

}  // namespace welkin::train
