// SPDX-License-Identifier: Apache-2.0
// A forecast of several steps: each prediction is the newest input of the next step. Computed channels, and those of the files
// whose role is forcing or static, are those of the step's own time, which is known in advance; nothing else of the truth enters
// after the start, but which points have a value.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "train/evaluate/trained_model.h"
#include "train/rollout/state_feed.h"

namespace welkin::train {

// Tensors (B, C, ...) on the model's device, normalised.
struct RolloutStep {
  int64_t lead = 1;       // steps of the rollout, from 1
  at::Tensor start;       // the input of lead 1
  at::Tensor target;      // the truth at this lead
  at::Tensor prediction;  // made of the start alone
};

class Rollout {
 public:
  // The model outlives the rollout. ConfigError where an input is neither predicted nor known in advance, history of more than
  // one step with a lead of more than one, a data set without order in time; or where no sample has `steps` steps of truth.
  Rollout(const TrainedModel& model, int64_t steps);

  int64_t steps() const { return steps_; }
  // Samples that begin a rollout, ascending.
  const std::vector<int64_t>& starts() const { return starts_; }
  // The starts of this rank, if replicas divide them in batches of evaluation.
  std::span<const int64_t> own_starts() const;

  // Runs these samples at once, lead by lead.
  void run(const std::vector<int64_t>& samples, const std::function<void(const RolloutStep&)>& body) const;

 private:
  void find_starts();
  data::Batch read(data::Pipeline& samples, const std::vector<int64_t>& indices) const;

  const TrainedModel& model_;
  int64_t steps_;
  StateFeed feed_;
  std::vector<int64_t> starts_;
};

// Scores of every lead over all starts, `batch` of them at once, which the replicas divide between them. `progress` is told how
// many of own_starts() are done.
std::vector<Scores> score_rollout(const TrainedModel& model, const Rollout& rollout, const at::Tensor& time_mean,
                                  const std::function<void(int64_t)>& progress);

}  // namespace welkin::train
