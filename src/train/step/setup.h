// SPDX-License-Identifier: Apache-2.0
// What a training step works on, made from a configuration in one call: by the trainer, and by what measures steps without one.
// It knows no data pipeline, no folder and no log.
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

// What a step should take, where it was measured before.
struct PredictedStep {
  int64_t peak_bytes = 0;  // of tensors on the device
  double seconds = 0;      // without waiting for data
};

// Others point into it, so it stays where it was made.
struct TrainSetup {
  explicit TrainSetup(const Layout& how) : layout(how) {}
  TrainSetup(const TrainSetup&) = delete;
  TrainSetup& operator=(const TrainSetup&) = delete;

  // model->forward(), for which weights that are shared out are whole. Ranks that share them make as many passes. Of a pipeline,
  // through all its stages and without gradients; its ranks call it together.
  at::Tensor forward(const at::Tensor& input, const model::ForwardContext& context) const;
  // Where weights are gathered for a pass, a rank without samples takes part with a sample of zeros, shaped as those of `like`
  // (..., any number), and every rank makes as many passes as the one that has most. Elsewhere `own`.
  at::Tensor forward_zeros(const at::Tensor& like) const;
  // (B): the losses of samples as the loader gives them, with what comes around their forward passes; `on_first` sees the first
  // prediction and may be empty. Not of a pipeline.
  at::Tensor losses(const at::Tensor& input, const at::Tensor& target, const model::ForwardContext& context,
                    const PredictionHook& on_first = {}) const;
  // (), of a rank without samples: as many passes as losses() makes, through a sample of zeros.
  at::Tensor outputs_of_zeros(const at::Tensor& input, const at::Tensor& target) const;
  at::Tensor forward_step(const at::Tensor& input, const model::ForwardContext& context) const;
  std::vector<at::Tensor> weights_of_chunk(int64_t chunk) const;  // that this stage of a pipeline works with, of those here
  int64_t joint_passes(int64_t own) const;
  bool joins_passes() const { return data_parallel->joins_every_forward(); }
  bool is_sharded() const { return layout.sharding.shards.size() > 1; }

  const Layout& layout;
  model::ModelPtr model;                   // in training mode, with its initial weights
  parallel::ParamTable table;              // the model's parameters; of a pipeline those of this rank's stages
  bool has_plan = false;                   // tensor parallelism can split the model
  std::string freeze_note;                 // which parameters keep their values; empty: none
  std::string checkpointing_note;          // what was chosen for a budget of memory; empty: there is none
  std::optional<PredictedStep> predicted;  // with it
  std::string attention_note;              // which form of torch's attention was chosen, and why; empty where there is no choice
  std::unique_ptr<parallel::PipelineEngine> pipeline;  // null where no pipeline cuts the model
  std::unique_ptr<parallel::GradientExchange> data_parallel;
  std::unique_ptr<parallel::TreeSum> unit_sum;  // rank_invariant, in the place of data_parallel's exchange
  LossPtr loss;
  std::unique_ptr<TrainingRollout> rollout;  // null where a sample is trained for one step of the model, on its input as it is
  bool runs_steps_again = false;             // then each of its steps keeps its input alone

  OptimizerPtr optimizer;
  std::unique_ptr<WeightAverage> weight_average;  // null unless ema_decay is given
  std::unique_ptr<LossScaler> scaler;
  std::unique_ptr<LrTable> lr_table;
  std::unique_ptr<SpikeGuard> spikes;                     // null where on_spike is off
  std::unique_ptr<ActivationOffload> activation_offload;  // null unless activations are offloaded
  std::vector<std::string> offload_notes;                 // what is kept outside of the device's memory, and where
  int64_t offload_buffers = 0;                            // bytes of the CPU's memory through which it comes
  at::Tensor counter;                                     // () int64 on the device: steps done, which keys dropout
};

// Whole when it returns. Every rank calls it. ConfigError for names that nothing is registered under; MemoryError, with what the
// memory holds, where the model or the optimizer's state does not fit. `layout` outlives it.
std::unique_ptr<TrainSetup> make_setup(const Layout& layout, const SetupSource& source, const RunLength& length);

// Installs at the sites of a model which a plan has split, before weights are shared out.
using SiteInstaller = std::function<void(model::Model&, const parallel::ParamTable&)>;

// The same with `install` in the place of what the configuration says of activation checkpointing.
std::unique_ptr<TrainSetup> make_setup(const Layout& layout, const SetupSource& source, const RunLength& length,
                                       const SiteInstaller& install);

// What its memory is for, as far as it is made; null before that. `buffers`: bytes of batches, if these are made.
KnownMemory known_memory(const TrainSetup* setup, int64_t buffers, bool has_buffers);

}  // namespace welkin::train
