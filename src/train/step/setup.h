// SPDX-License-Identifier: Apache-2.0
// The objects of a training step, made from a configuration in one call: for the trainer, and for code that measures steps
// without one. It knows no data pipeline, no folder and no log.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/base/model.h"
#include "parallel/comm/tree_sum.h"
#include "parallel/pipeline/pipeline_engine.h"
#include "parallel/shard/gradient_exchange.h"
#include "parallel/shard/param_table.h"
#include "train/device/memory_report.h"
#include "train/learn/loss.h"
#include "train/learn/lr_schedule.h"
#include "train/learn/lr_table.h"
#include "train/learn/precision.h"
#include "train/learn/spike_guard.h"
#include "train/offload/activation_offload.h"
#include "train/optim/optimizer.h"
#include "train/optim/weight_average.h"
#include "train/rollout/training_rollout.h"
#include "train/step/layout.h"

namespace welkin::train {

// The predicted cost of a step, if it was measured before.
struct PredictedStep {
  int64_t peak_bytes = 0;  // of tensors on the device
  double seconds = 0;      // without waiting for data
};

// It must not move: others point into it.
struct TrainSetup {
  explicit TrainSetup(const Layout& how) : layout(how) {}
  TrainSetup(const TrainSetup&) = delete;
  TrainSetup& operator=(const TrainSetup&) = delete;

  // model->forward() with shared-out weights gathered. Ranks that share weights make equally many passes. In a pipeline:
  // through all its stages and without gradients; its ranks call it together.
  at::Tensor forward(const at::Tensor& input, const model::ForwardContext& context) const;
  // If weights are gathered for a pass: a rank without samples passes a sample of zeros, shaped like those of `like` (..., any
  // number). joint_passes(): the largest `own` of all ranks then, since all make equally many passes; else `own`.
  at::Tensor forward_zeros(const at::Tensor& like) const;
  // (B): the losses of samples as the loader gives them, with the work around their forward passes. `on_first` gets the first
  // prediction; may be empty. Not in a pipeline.
  at::Tensor losses(const at::Tensor& input, const at::Tensor& target, const model::ForwardContext& context,
                    const PredictionHook& on_first = {}) const;
  // (), for a rank without samples: makes as many passes as losses(), through a sample of zeros.
  at::Tensor outputs_of_zeros(const at::Tensor& input, const at::Tensor& target) const;
  at::Tensor forward_step(const at::Tensor& input, const model::ForwardContext& context) const;
  std::vector<at::Tensor> weights_of_chunk(int64_t chunk) const;  // those here that this pipeline stage uses
  int64_t joint_passes(int64_t own) const;
  bool joins_passes() const { return data_parallel->joins_every_forward(); }
  bool is_sharded() const { return layout.sharding.shards.size() > 1; }

  const Layout& layout;
  model::ModelPtr model;                   // in training mode, with its initial weights
  parallel::ParamTable table;              // the model's parameters; of a pipeline those of this rank's stages
  bool has_plan = false;                   // tensor parallelism can split the model
  std::string freeze_note;                 // the frozen parameters; empty: none
  std::string checkpointing_note;          // the choice for a memory budget; empty: there is none
  std::optional<PredictedStep> predicted;  // the cost with that choice
  std::string attention_note;              // the chosen form of torch's attention, and why; empty if there is no choice
  std::unique_ptr<parallel::PipelineEngine> pipeline;  // null without a pipeline
  std::unique_ptr<parallel::GradientExchange> data_parallel;
  std::unique_ptr<parallel::TreeSum> unit_sum;  // rank_invariant: replaces data_parallel's exchange
  LossPtr loss;
  std::unique_ptr<TrainingRollout> rollout;  // null if a sample is trained for one step of the model, on its input as it is
  bool runs_steps_again = false;             // then each of its steps keeps only its input

  OptimizerPtr optimizer;
  std::unique_ptr<WeightAverage> weight_average;  // null unless ema_decay is given
  std::unique_ptr<LossScaler> scaler;
  std::unique_ptr<LrTable> lr_table;
  std::unique_ptr<SpikeGuard> spikes;                     // null if on_spike is off
  std::unique_ptr<ActivationOffload> activation_offload;  // null unless activations are offloaded
  std::vector<std::string> offload_notes;                 // where state outside of the device's memory is kept
  int64_t offload_buffers = 0;                            // bytes of the CPU's memory for its transfers
  at::Tensor counter;                                     // () int64 on the device: steps done, which keys dropout
};

// Returns a complete set-up. Every rank calls it. ConfigError for names that nothing is registered under; MemoryError, with the
// use of the memory, if the model or the optimizer's state does not fit. `layout` outlives it.
std::unique_ptr<TrainSetup> make_setup(const Layout& layout, const SetupSource& source, const RunLength& length);

// Installs wrappers at the sites of a model after a plan has split it, and before weights are shared out.
using SiteInstaller = std::function<void(model::Model&, const parallel::ParamTable&)>;

// The same with `install` instead of the configured activation checkpointing.
std::unique_ptr<TrainSetup> make_setup(const Layout& layout, const SetupSource& source, const RunLength& length,
                                       const SiteInstaller& install);

// The use of memory by the parts that are made; `setup` null: none is. `buffers`: bytes of batches, if these are made.
KnownMemory known_memory(const TrainSetup* setup, int64_t buffers, bool has_buffers);

}  // namespace welkin::train
