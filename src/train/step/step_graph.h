// SPDX-License-Identifier: Apache-2.0
// A step as recordings (ops/device/device_graph.h): one per kind of micro-batch, which works on tensors that stay in place. It
// knows no model and no optimizer: the step defines a micro-batch's work (train/step/step.h).
#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "config/schema/run_config.h"
#include "data/pipeline/pipeline.h"
#include "ops/device/device_graph.h"
#include "parallel/comm/group.h"
#include "train/step/recording_rule.h"

namespace welkin::train {

// ConfigError if `cuda_graph` is on and steps cannot be recorded: on a CPU, without the CUDA library, with rank_invariant, or
// among ranks that share a GPU.
void check_cuda_graph(const config::RunConfig& config, c10::Device device);
void check_cuda_graph(const config::RunConfig& config, const parallel::Group& ranks);

// The recorder that `cuda_graph` asks for; null if it is off.
ops::GraphRecorderPtr graph_recorder(const config::RunConfig& config, c10::Device device);

class StepGraph {
 public:
  // `channels_last`: the layout of the model's input, which is made in the copy to its place instead of in each replay.
  explicit StepGraph(ops::GraphRecorderPtr recorder, int64_t warm_ups = RecordingRule::kWarmUps, bool channels_last = false)
      : recorder_(std::move(recorder)), rule_(warm_ups), channels_last_(channels_last) {}

  // The whole step runs inside of it, in every phase.
  void run(const std::function<void()>& step) { recorder_->run(step); }

  // The phase of the step that begins with this micro-batch; `samples` of all ranks. Ranks that step together must come to the
  // same phase: a collective that is recorded on one is recorded on all.
  StepPhase begin(const data::Batch& first, int64_t samples, bool is_watched);

  // In the phases Record and Replay, for each micro-batch of the step in order: copies it to its place. Runs `work` on it there
  // only to record it.
  void run_micro(const data::Batch& batch, const std::function<void(const data::Batch&)>& work);

  // Waits for the device.
  void wait() { recorder_->wait(); }

 private:
  // First, middle and last micro-batches do different work, and so do those of other sizes.
  struct Recording {
    size_t place = 0;
    bool is_first = false, is_last = false;
    size_t number = 0;  // the recorder's number
  };

  size_t place_of(const data::Batch& batch);
  size_t recording_of(const data::Batch& batch, size_t place, const std::function<void(const data::Batch&)>& work);

  ops::GraphRecorderPtr recorder_;
  RecordingRule rule_;
  bool channels_last_;
  StepPhase phase_ = StepPhase::Eager;
  std::vector<data::Batch> places_;  // tensors at fixed places, to which recordings point
  std::vector<Recording> recordings_;
};

}  // namespace welkin::train
