// SPDX-License-Identifier: Apache-2.0
#include "train/evaluate/rollout.h"

#include <ATen/ops/cat.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "data/sample/sequences.h"

namespace welkin::train {

Rollout::Rollout(const TrainedModel& model, int64_t steps)
    : model_(model), steps_(steps), feed_(model.dataset().spec(), model.config(), model.device()) {
  feed_.check_next(model.dataset().spec(), model.config());
  find_starts();
}

void Rollout::find_starts() {
  const data::Dataset& dataset = model_.dataset();
  int64_t longest = 0;
  for (int64_t index = 0; index < dataset.size(); ++index) {
    const int64_t after = data::steps_after(dataset, index, steps_);
    longest = std::max(longest, after);
    if (after >= steps_) starts_.push_back(index);
  }
  if (!starts_.empty()) return;
  throw ConfigError("rollout",
                    cat("no sample has so many steps of truth after it: rollout_steps=", steps_, ", longest=", longest),
                    "Ask for fewer steps, or give longer files");
}

std::span<const int64_t> Rollout::own_starts() const {
  const auto together = model_.batch_size(), all = static_cast<int64_t>(starts_.size());
  const TrainedModel::OwnRange batches = model_.own_of((all + together - 1) / together);
  const int64_t begin = std::min(all, batches.begin * together), end = std::min(all, batches.end * together);
  return {starts_.begin() + begin, starts_.begin() + end};
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
    truth.input = feed_.next(batch.input, prediction, feed_.known_of(truth.input), batch.target);
    batch = std::move(truth);
  }
}

std::vector<Scores> score_rollout(const TrainedModel& model, const Rollout& rollout, const at::Tensor& time_mean,
                                  const std::function<void(int64_t)>& progress) {
  std::vector<ScoreSums> sums;
  for (int64_t lead = 1; lead <= rollout.steps(); ++lead) sums.emplace_back(model.dataset().spec(), time_mean, model.has_holes());
  const std::span<const int64_t> starts = rollout.own_starts();
  const auto together = static_cast<size_t>(model.batch_size());
  for (size_t first = 0; first < starts.size(); first += together) {
    const std::span<const int64_t> batch = starts.subspan(first, std::min(together, starts.size() - first));
    rollout.run({batch.begin(), batch.end()}, [&](const RolloutStep& step) {
      sums[static_cast<size_t>(step.lead - 1)].add(step.start, step.target, step.prediction,
                                                   model.losses(step.prediction, step.target));
    });
    progress(static_cast<int64_t>(first + batch.size()));
  }
  std::vector<Scores> scores;
  for (ScoreSums& sum : sums) {
    sum.add_up(model.replicas());
    scores.push_back(sum.finish());
  }
  check_has_points(scores);
  return scores;
}

}  // namespace welkin::train
