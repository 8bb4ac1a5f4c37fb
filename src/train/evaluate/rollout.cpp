// SPDX-License-Identifier: Apache-2.0
#include "train/evaluate/rollout.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/isnan.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"

namespace welkin::train {
namespace {

// Input channels of the newest step that the data know of any time.
std::vector<int64_t> known_channels(const data::SampleSpec& spec) {
  if (!spec.known_input.empty() || !spec.earlier_target.empty()) return spec.known_input;
  std::vector<int64_t> channels;
  for (int64_t c = spec.newest_input_channel + spec.target.shape[0]; c < spec.input.shape[0]; ++c) channels.push_back(c);
  return channels;
}

// The number of steps of truth after a sample, at most `most`.
int64_t steps_after(const data::Dataset& dataset, int64_t index, int64_t most) {
  int64_t steps = 1;  // its own target
  for (auto next = dataset.following(index); next && steps < most; next = dataset.following(*next)) ++steps;
  return steps;
}

}  // namespace

Rollout::Rollout(const TrainedModel& model, int64_t steps) : model_(model), steps_(steps) {
  check_channels();
  find_starts();
}

// Every input channel of the newest step is predicted, or known of any time.
void Rollout::check_channels() const {
  const data::SampleSpec& spec = model_.dataset().spec();
  const config::RunConfig& config = model_.config();
  if (!has_persistence(spec)) {
    throw ConfigError("rollout", cat("the input is no earlier state of the target: model=", config.model.model),
                      "Only forecasts of fields in time can be rolled out");
  }
  const std::vector<int64_t> fed = earlier_channels(spec), known = known_channels(spec);
  std::vector<std::string> unknown;
  for (int64_t c = spec.newest_input_channel; c < spec.input.shape[0]; ++c) {
    if (std::ranges::count(fed, c) + std::ranges::count(known, c) == 0) {
      unknown.push_back(spec.input.channels[static_cast<size_t>(c)]);
    }
  }
  if (!unknown.empty()) {
    throw ConfigError(
        "rollout",
        cat("the prediction is not the next input, some of its channels are not predicted: channels=", join(unknown, " ")),
        "Predict them as well, or say that they are known in advance: roles: [NAME=forcing]");
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

// The states move by one step and the oldest leaves. What is predicted takes its place among the newest channels, with what the
// input has at points without a value; the others come from the sample of that time.
at::Tensor Rollout::next_input(const at::Tensor& input, const at::Tensor& prediction, const data::Batch& truth,
                               const at::Tensor& target) const {
  const data::SampleSpec& spec = model_.dataset().spec();
  const int64_t newest = spec.newest_input_channel, history = model_.config().data.history;
  const int64_t step = history > 1 ? newest / (history - 1) : 0;
  at::Tensor next = at::cat({input.narrow(1, step, newest), truth.input.narrow(1, newest, input.size(1) - newest)}, 1);
  const std::vector<int64_t> fed = earlier_channels(spec);
  for (size_t c = 0; c < fed.size(); ++c) {
    if (fed[c] < 0) continue;
    const auto from = static_cast<int64_t>(c);
    at::Tensor values = prediction.select(1, from);
    if (model_.has_holes()) {
      const double fill = spec.input_fill.empty() ? 0.0 : spec.input_fill[static_cast<size_t>(fed[c])];
      values = values.masked_fill(at::isnan(target.select(1, from)), fill);
    }
    next.select(1, fed[c]).copy_(values);
  }
  return next;
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
    truth.input = next_input(batch.input, prediction, truth, batch.target);
    batch = std::move(truth);
  }
}

std::vector<Scores> score_rollout(const TrainedModel& model, const Rollout& rollout, const at::Tensor& time_mean,
                                  const std::function<void(int64_t)>& progress) {
  std::vector<ScoreSums> sums;
  for (int64_t lead = 1; lead <= rollout.steps(); ++lead) sums.emplace_back(model.dataset().spec(), time_mean, model.has_holes());
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
