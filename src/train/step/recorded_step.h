// SPDX-License-Identifier: Apache-2.0
// A step as recordings that are replayed (CUDA graphs): one per kind of micro-batch, the last with all the work after it. It
// wraps an EagerStep, whose parts it records. Steps of another shape, or whose predictions are observed, run eagerly, with the
// same result.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "train/step/step.h"
#include "train/step/step_graph.h"

namespace welkin::train {

class RecordedStep : public Step {
 public:
  // The options have a recorder. `setup` and `config` outlive it.
  RecordedStep(TrainSetup& setup, const config::RunConfig& config, StepOptions options);

  StepRecord run(const Source& next, double stop_requested = 0) override;

 private:
  StepRecord run_in_graph(const Source& next, double stop_requested);
  bool may_be_recorded(const data::Batch& first, int64_t samples) const;
  void record(const data::Batch& batch);
  StepRecord recorded_numbers() const;

  parallel::Group world_group_;
  int64_t global_batch_size_;
  const observe::Tracer* tracer_;
  std::function<bool(const data::Batch&)> wants_forward_;
  StepGraph graph_;
  bool is_recording_ = false;  // no callbacks during a recording
  EagerStep step_;

  // Outputs of the recordings, written again in every replay.
  at::Tensor loss_;                    // () float32 of the micro-batches so far
  at::Tensor numbers_;                 // (8) float64: see recorded_numbers()
  std::vector<at::Tensor> gradients_;  // kept, since the recordings point to them
};

}  // namespace welkin::train
