// SPDX-License-Identifier: Apache-2.0
// One optimizer step: forward and backward of its micro-batches under autocast, the gradient reductions of the layout, clipping
// and the update. `welkin train` and `welkin bench` use the same object, on any layout. It never waits for the device and
// builds no strings while no tracer is active.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "config/schema/run_config.h"
#include "data/pipeline/pipeline.h"
#include "observe/timeline/span.h"
#include "ops/device/device_graph.h"
#include "parallel/comm/group.h"
#include "train/learn/gradients.h"
#include "train/step/setup.h"
#include "train/step/step_record.h"

namespace welkin::train {

// Samples of a step over all ranks: the last of an epoch may have fewer. `dataset_size`: samples of an epoch.
int64_t samples_of_step(const config::RunConfig& config, int64_t num_replicas, int64_t dataset_size, int64_t step);

struct StepOptions {
  c10::Device device = c10::kCPU;
  parallel::Group world_group{};            // all ranks of the run, among which loss and requests are summed
  int64_t dataset_size = 0;                 // samples of an epoch
  const observe::Tracer* tracer = nullptr;  // spans fetch, forward, backward, reduce, optimizer
  // Number of notes of this rank that are not shared yet. Their sum over ranks is the second entry of StepRecord::requests.
  // Called after the step has fetched its batches; may be empty.
  std::function<double()> pending_notes{};
  // True if this rank has written its part of a checkpoint of all ranks. Called likewise; may be empty.
  std::function<bool()> files_written{};
  // True if this rank knows of processes that wait to join an elastic run. Called likewise; may be empty.
  std::function<bool()> others_wait{};
  // Gets each micro-batch with the model's prediction; may be empty. If steps are recorded it is called only for steps whose
  // first micro-batch `wants_forward` accepts.
  std::function<void(const data::Batch&, const at::Tensor&)> on_forward{};
  std::function<bool(const data::Batch&)> wants_forward{};
  // Gets each micro-batch's loss and scaled loss, before the backward pass of the latter: for fault injection; may be empty.
  std::function<void(at::Tensor& loss, at::Tensor& scaled)> change_losses{};
  ops::GraphRecorderPtr recorder{};  // graph_recorder() of step_graph.h; null: every step is sent to the device kernel by kernel
};

class Step {
 public:
  // The next micro-batch of this rank; the last of a step says so (micro + 1 == num_micro).
  using Source = std::function<data::Batch()>;

  virtual ~Step() = default;

  // Every rank calls it. `stop_requested`: 1 if this rank wants the run to stop; the sum over ranks is the first of
  // StepRecord::requests.
  virtual StepRecord run(const Source& next, double stop_requested = 0) = 0;
};

// An EagerStep, or a RecordedStep around one if the options have a recorder. `setup` and `config` outlive it.
std::unique_ptr<Step> make_step(TrainSetup& setup, const config::RunConfig& config, StepOptions options);

// Sends every kernel of every step to the device.
class EagerStep : public Step {
 public:
  EagerStep(TrainSetup& setup, const config::RunConfig& config, StepOptions options);
  EagerStep(const EagerStep&) = delete;
  EagerStep& operator=(const EagerStep&) = delete;

  StepRecord run(const Source& next, double stop_requested = 0) override { return run(fetch(next), next, stop_requested); }
  // The same with the first micro-batch, which was fetched already.
  StepRecord run(data::Batch batch, const Source& next, double stop_requested);

  // The parts of run(), which RecordedStep records: begin(), micro_step() for each, post_requests(), finish(), clear_gradients().
  void begin(const at::Tensor& loss) { loss_ = loss; }  // () float32 zero, to which micro_step() adds
  data::Batch fetch(const Source& next);
  void micro_step(const data::Batch& batch);
  void post_requests(double stop_requested);
  StepRecord finish();
  std::vector<at::Tensor> clear_gradients();  // returns them, for a caller that must keep their memory

  int64_t samples_of(const data::Batch& batch) const;  // of the batch's step, over all ranks

 private:
  at::Tensor micro_loss(const data::Batch& batch);
  at::Tensor losses_of(const data::Batch& batch, const PredictionHook& on_first = {}) const;
  void show_forward(const data::Batch& batch, const at::Tensor& prediction) const;
  int64_t micro_steps_of(const data::Batch& batch) const;
  void join_micro_steps(const data::Batch& last);
  at::Tensor scaled_loss(at::Tensor& loss) const;
  at::Tensor nothing_of_all() const;
  void pipeline_step(data::Batch& batch, const Source& next, std::vector<int64_t>& samples);
  std::vector<parallel::PipelineBatch> first_lead(const data::Batch& batch, bool with_noise) const;
  at::Tensor lead_loss(const data::Batch& batch, int64_t lead, int64_t leads, const std::vector<at::Tensor>& outputs);
  std::vector<at::Tensor> own_gradients(const data::Batch& batch);
  bool is_rechecked() const;
  void recheck(const data::Batch& batch);
  void add_unit();
  void sum_units();
  void sum_over_ranks(StepRecord& record);
  void look_for_spike(StepRecord& record) const;
  void update(const StepRecord& record);
  GradientScope gradient_scope() const;
  GradientScope layer_scope() const;
  SumOverParts sum_over_parts() const;
  std::vector<size_t> trained_rows() const;
  void add_exchanges(StepInputs& inputs) const;

  TrainSetup& setup_;
  const config::RunConfig& config_;
  StepOptions options_;
  GradientScope scope_;
  SumOverParts sum_over_parts_;
  std::vector<size_t> trained_rows_;  // the optimizer's parameters
  bool channels_last_;
  at::Tensor loss_;                    // of the micro-batches so far
  at::Tensor requests_;                // (4) float64, this rank's: see StepRecord::requests
  std::vector<at::Tensor> gradients_;  // of this step
};

}  // namespace welkin::train
