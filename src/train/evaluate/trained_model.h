// SPDX-License-Identifier: Apache-2.0
// A model with the weights of a checkpoint, and a part of the data to run it on: what evaluation and prediction start from.
#pragma once

#include <c10/core/Device.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/pipeline/pipeline.h"
#include "model/base/model.h"
#include "parallel/comm/group.h"
#include "parallel/pipeline/pipeline_engine.h"
#include "parallel/shard/param_table.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/whole_tensors.h"
#include "train/device/process_settings.h"
#include "train/evaluate/scores.h"
#include "train/learn/registries.h"

namespace welkin::train {

// Which checkpoint of which run, on which part of the data.
struct ModelChoice {
  std::filesystem::path run_folder;
  std::string checkpoint = "best";  // "best" (smallest validation loss), "newest", a step, or the path of one of any format
  bool averaged = false;            // the moving average of weights that the run kept, instead of the weights
  data::Split split = data::Split::Valid;
  int64_t local_rank = 0, local_size = 1;  // of this process among those of its node, for its GPU
  // What the configuration decides for the process holds as long as the model lives; false: only while it is made and predicts,
  // for a process that has work of its own.
  bool keeps_settings = true;
  // What became of samples that could not be read, and reads that do not come back (these from another thread).
  std::function<void(const std::string&)> report{};
  // Who has the model's stages, in their order: each rank loads its own alone, and all of them predict together. One member: the
  // whole model is here.
  parallel::Group stages{};
};

data::Split parse_split(const std::string& name);  // train, valid, test; ConfigError otherwise

class TrainedModel {
 public:
  // Opens the data, builds the model as `config` says and loads its weights. The model is in evaluation mode.
  TrainedModel(const Registries& registries, const config::RunConfig& config, const ModelChoice& choice);
  // Of these data instead of the run's, where they are not null: samples of the same specification.
  TrainedModel(const Registries& registries, const config::RunConfig& config, const ModelChoice& choice,
               std::unique_ptr<data::Dataset> dataset);

  const data::Dataset& dataset() const { return *dataset_; }
  const config::RunConfig& config() const { return config_; }
  int64_t step() const { return step_; }
  const std::filesystem::path& checkpoint() const { return checkpoint_; }

  int64_t weight_bytes() const;
  uint64_t weights_hash() const;  // of parameters and buffers, in their order
  int64_t batch_size() const;     // of evaluation: the run's micro-batch
  // Batches in the order of the data set, each sample once.
  data::Pipeline pipeline(int64_t batch_size) const;
  // Autocast as in training; no gradient. float32 out.
  at::Tensor predict(const data::Batch& batch) const;
  // The same of several, which stages work on side by side.
  std::vector<at::Tensor> predict(const std::vector<data::Batch>& batches) const;
  // The same of inputs on the device, with what keys their dropout.
  at::Tensor predict(const at::Tensor& input, const model::ForwardContext& context) const;
  // The same with the gradient of what requires one; not of stages.
  at::Tensor forward(const at::Tensor& input, const model::ForwardContext& context) const;
  const model::ModelPtr& model() const { return model_; }
  // Dropout and drop-path as in training from here on.
  void enable_dropout() { model_->train(); }
  c10::Device device() const { return device_; }
  // (B) of predictions that predict() gave.
  bool has_holes() const;  // points of a target may have no value: they are NaN
  at::Tensor losses(const at::Tensor& prediction, const at::Tensor& target) const;

  // Every sample once. `time_mean` as read_time_mean() gave it. `progress` is told how many samples are done.
  Scores score(const at::Tensor& time_mean, const std::function<void(int64_t)>& progress) const;

 private:
  void build(const Registries& registries, const ModelChoice& choice);
  void build_stage(const Registries& registries);
  void load_weights(const ModelChoice& choice);
  void load_average(const CheckpointGroup& weights);
  void load_stage(const CheckpointGroup& weights, const TensorLayout& layout);
  void learn_shapes();
  model::ForwardContext context_of(const data::Batch& batch) const;
  data::Batch next_of(data::Pipeline& batches) const;

  config::RunConfig config_;
  c10::Device device_;
  std::unique_ptr<ProcessSession> session_;  // outlives the model; null where it does not keep its settings
  std::unique_ptr<data::Dataset> dataset_;
  model::ModelPtr model_;
  parallel::ParamTable table_;  // what of the model is here
  parallel::Group stages_;
  std::unique_ptr<parallel::PipelineEngine> pipeline_;  // null where the whole model is here
  LossPtr loss_;
  std::filesystem::path checkpoint_;
  int64_t step_ = 0;
  std::function<void(const std::string&)> report_;
};

}  // namespace welkin::train
