// SPDX-License-Identifier: Apache-2.0
#include "train/evaluate/rollout.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace welkin::train {
namespace {

// The number of steps of truth after a sample, at most `most`.
int64_t steps_after(const data::Dataset& dataset, int64_t index, int64_t most) {
  int64_t steps = 1;  // its own target
  for (auto next = dataset.following(index); next && steps < most; next = dataset.following(*next)) ++steps;
  return steps;
}

}  // namespace

Rollout::Rollout(const TrainedModel& model, int64_t steps)
    : model_(model), steps_(steps), state_channels_(model.dataset().spec().target.shape.at(0)) {
  check_channels();
  find_starts();
}

void Rollout::check_channels() const {
  const data::SampleSpec& spec = model_.dataset().spec();
  const config::RunConfig& config = model_.config();
  if (!has_persistence(spec)) {
    throw ConfigError("rollout", cat("the input is no earlier state of the target: model=", config.model.model),
                      "Only forecasts of fields in time can be rolled out");
  }
  if (config.model.n_in_channels != config.model.n_out_channels) {
    throw ConfigError("rollout",
                      cat("the prediction is not the next input: n_in_channels=", config.model.n_in_channels,
                          ", n_out_channels=", config.model.n_out_channels),
                      "Train a model that predicts every channel of its input; channels known in advance belong to forcing");
  }
  if (config.data.history > 1 && config.data.dt > 1) {
    throw ConfigError(
        "rollout",
        cat("a rollout needs every input step to be predicted: history=", config.data.history, ", dt=", config.data.dt),
        "Train with history 1, or with dt 1");
  }
}

void Rollout::find_starts() {
  const data::Dataset& dataset = model_.dataset();
  int64_t longest = 0;
  for (int64_t index = 0; index < dataset.size(); ++index) {
    const int64_t after = steps_after(dataset, index, steps_);
    longest = std::max(longest, after);
    if (after >= steps_) starts_.push_back(index);
  }
  if (!starts_.empty()) return;
  throw ConfigError("rollout",
                    cat("no sample has so many steps of truth after it: rollout_steps=", steps_, ", longest=", longest),
                    "Ask for fewer steps, or give longer files");
}

data::Batch Rollout::read(data::Pipeline& samples, const std::vector<int64_t>& indices) const {
  std::vector<at::Tensor> input, target, number;
  for (const int64_t index : indices) {
    samples.resume({.epoch = 0, .step = index});
    const data::Batch one = samples.next();
    input.push_back(one.input.clone());  // the pipeline uses its buffers again
    target.push_back(one.target.clone());
    number.push_back(one.sample.clone());
  }
  data::Batch batch;
  batch.input = at::cat(input);
  batch.target = at::cat(target);
  batch.sample = at::cat(number);
  return batch;
}

// The target's channels may stand in another order than the input's.
at::Tensor Rollout::in_input_order(const at::Tensor& prediction) const {
  const data::SampleSpec& spec = model_.dataset().spec();
  const std::vector<int64_t> earlier = earlier_channels(spec);
  std::vector<int64_t> order(earlier.size());
  for (size_t c = 0; c < earlier.size(); ++c)
    order[static_cast<size_t>(earlier[c] - spec.newest_input_channel)] = static_cast<int64_t>(c);
  if (std::ranges::is_sorted(order)) return prediction;
  return prediction.index_select(1, at::tensor(order, prediction.options().dtype(at::kLong)));
}

// The states move by one step, the oldest leaves; computed channels come from the sample of that time.
at::Tensor Rollout::next_input(const at::Tensor& input, const at::Tensor& prediction, const at::Tensor& truth_input) const {
  const int64_t newest = model_.dataset().spec().newest_input_channel, states = newest + state_channels_;
  return at::cat({input.narrow(1, state_channels_, newest), in_input_order(prediction),
                  truth_input.narrow(1, states, input.size(1) - states)},
                 1);
}

void Rollout::run(const std::vector<int64_t>& samples, const std::function<void(const RolloutStep&)>& body) const {
  data::Pipeline single = model_.pipeline(1);
  std::vector<int64_t> indices = samples;
  data::Batch batch = read(single, indices);
  const at::Tensor start = batch.input;
  for (int64_t lead = 1;; ++lead) {
    const at::Tensor prediction = model_.predict(batch);
    body({.lead = lead, .start = start, .target = batch.target, .prediction = prediction});
    if (lead == steps_) return;
    for (int64_t& index : indices) index = model_.dataset().following(index).value();
    data::Batch truth = read(single, indices);
    truth.input = next_input(batch.input, prediction, truth.input);
    batch = std::move(truth);
  }
}

std::vector<Scores> score_rollout(const TrainedModel& model, const Rollout& rollout, const at::Tensor& time_mean,
                                  const std::function<void(int64_t)>& progress) {
  std::vector<ScoreSums> sums;
  for (int64_t lead = 1; lead <= rollout.steps(); ++lead) sums.emplace_back(model.dataset().spec(), time_mean);
  const auto& starts = rollout.starts();
  const auto together = static_cast<size_t>(model.batch_size());
  for (size_t first = 0; first < starts.size(); first += together) {
    const size_t end = std::min(starts.size(), first + together);
    rollout.run({starts.begin() + static_cast<std::ptrdiff_t>(first), starts.begin() + static_cast<std::ptrdiff_t>(end)},
                [&](const RolloutStep& step) {
                  sums[static_cast<size_t>(step.lead - 1)].add(step.start, step.target, step.prediction,
                                                               model.losses(step.prediction, step.target));
                });
    progress(static_cast<int64_t>(end));
  }
  std::vector<Scores> scores;
  for (const ScoreSums& sum : sums) scores.push_back(sum.finish());
  return scores;
}

}  // namespace welkin::train
