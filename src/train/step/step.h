// SPDX-License-Identifier: Apache-2.0
// One optimizer step: its micro-batches forward and backward under autocast, the reductions that the layout owes, clipping, the
// update. The same object steps in `welkin train` and in `welkin bench`, on any layout. Nothing in it waits for the device, and
// nothing makes text while no one listens.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "config/schema/run_config.h"
#include "data/pipeline/pipeline.h"
#include "observe/timeline/span.h"
#include "parallel/comm/group.h"
#include "train/learn/gradients.h"
#include "train/step/step_graph.h"
#include "train/step/step_parts.h"
#include "train/step/step_record.h"

namespace welkin::train {

// Samples of a step over all ranks: the last of an epoch may have fewer. `dataset_size`: samples of an epoch.
int64_t samples_of_step(const config::RunConfig& config, int64_t num_replicas, int64_t dataset_size, int64_t step);

struct StepOptions {
  c10::Device device = c10::kCPU;
  parallel::Group everyone{};               // all ranks of the run, among which loss and wishes to stop are summed
  int64_t dataset_size = 0;                 // samples of an epoch
  const observe::Tracer* tracer = nullptr;  // spans fetch, forward, backward, reduce, optimizer
  // What else this rank has to tell the others: the sum over them is the second of StepRecord::wishes. Asked once the step has
  // its batches; may be empty.
  std::function<double()> waiting{};
  // Each micro-batch with what the model made of it; may be empty. Where steps are recorded it is called for those only whose
  // first micro-batch `watches` wants to see.
  std::function<void(const data::Batch&, const at::Tensor&)> seen{};
  std::function<bool(const data::Batch&)> watches{};
  ops::GraphRecorderPtr recorder{};  // graph_recorder() of step_graph.h; null: every step is sent to the device kernel by kernel
};

class Step {
 public:
  // The next micro-batch of this rank; the last of a step says so (micro + 1 == num_micro).
  using Source = std::function<data::Batch()>;

  // `parts` and `config` outlive it.
  Step(StepParts& parts, const config::RunConfig& config, StepOptions options);
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  // Every rank calls it. `wish`: 1 where this rank wants the run to stop; their sum is the first of StepRecord::wishes.
  StepRecord run(const Source& next, double wish = 0);

 private:
  StepRecord run_as_it_is(data::Batch batch, const Source& next, double wish);
  StepRecord run_recorded(const Source& next, double wish);
  void record_micro_step(const data::Batch& batch);
  bool may_be_recorded(const data::Batch& first, int64_t samples) const;
  StepRecord recorded_numbers() const;
  data::Batch fetch(const Source& next);
  void add_micro_steps(data::Batch batch, const Source& next, StepRecord& record);
  at::Tensor run_micro_step(const data::Batch& batch);
  void finish(StepRecord& record);
  at::Tensor micro_loss(const data::Batch& batch);
  bool lies_channels_last() const { return options_.device.is_cuda() && config_.backend.channels_last; }
  void add_unit(at::Tensor& loss);
  void sum_units(at::Tensor& loss);
  void tell(double wish);
  void exchange(StepRecord& record);
  void reduce_leftovers();
  void collect_gradients();
  void update(const StepRecord& record);
  GradientScope gradient_scope() const;

  StepParts& parts_;
  const config::RunConfig& config_;
  StepOptions options_;
  GradientScope scope_;
  at::Tensor told_;                    // (2) float64, what this rank tells the others: see StepRecord::wishes
  std::vector<at::Tensor> gradients_;  // of this step; kept for its memory

  // Where steps are recorded.
  std::unique_ptr<StepGraph> graph_;
  bool is_recorded_ = false;                    // what runs now is a recording's work, into which nobody looks
  at::Tensor loss_;                             // () of the micro-batches so far
  at::Tensor numbers_;                          // what a step leaves behind, see recorded_numbers()
  std::vector<at::Tensor> recorded_gradients_;  // to which the recordings point
};

}  // namespace welkin::train
