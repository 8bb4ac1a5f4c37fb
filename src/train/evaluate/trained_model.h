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
#include "parallel/comm/mesh_groups.h"
#include "parallel/pipeline/pipeline_engine.h"
#include "parallel/shard/param_table.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/whole_tensors.h"
#include "train/device/process_settings.h"
#include "train/evaluate/scores.h"
#include "train/learn/registries.h"
#include "train/learn/sample_shard.h"

namespace welkin::train {

// Which checkpoint of which run, and which part of the data.
struct ModelChoice {
  std::filesystem::path run_folder;
  std::string checkpoint = "best";  // "best" (smallest validation loss), "newest", a step, or the path of one of any format
  bool averaged = false;            // the moving average of weights that the run kept, instead of the weights
  data::Split split = data::Split::Valid;
  int64_t local_rank = 0, local_size = 1;  // of this process among those of its node, for its GPU
  // What the configuration decides for the process holds as long as the model lives; false: only while it is made and predicts,
  // for a process that has work of its own.
  bool keeps_settings = true;
  // Gets lines about samples that could not be read, and reads that do not come back (these from another thread).
  std::function<void(const std::string&)> report{};
  // The ranks that evaluate together, and their axes: replicas have samples of their own, and of those that share a sample each
  // loads its part of the model alone. By default this process alone, which has the whole model and every sample.
  parallel::Group world{};
  parallel::MeshGroups groups{};
};

// True on one of the ranks that share their samples: the one that reports and writes for them.
bool is_first_of_replica(const parallel::MeshGroups& groups);

data::Split parse_split(const std::string& name);  // train, valid, test; ConfigError otherwise

class TrainedModel {
 public:
  // Opens the data, builds the model as `config` says and loads its weights. The model is in evaluation mode.
  TrainedModel(const Registries& registries, const config::RunConfig& config, const ModelChoice& choice);
  // The same on these data instead of the run's, if not null: samples of the same specification.
  TrainedModel(const Registries& registries, const config::RunConfig& config, const ModelChoice& choice,
               std::unique_ptr<data::Dataset> dataset);

  const data::Dataset& dataset() const { return *dataset_; }
  // Ranks with the same weights, which divide the samples between them.
  const parallel::Group& replicas() const { return groups_.along(parallel::kDp); }
  bool is_first_of_replica() const { return train::is_first_of_replica(groups_); }
  // This rank's share of `count` things that the replicas divide between them in their order: [begin, end).
  struct OwnRange {
    int64_t begin = 0, end = 0;
  };
  OwnRange own_of(int64_t count) const;
  const config::RunConfig& config() const { return config_; }
  int64_t step() const { return step_; }
  const std::filesystem::path& checkpoint() const { return checkpoint_; }

  int64_t weight_bytes() const;
  // Of parameters and buffers, in their order. Ranks that share a sample call it together, and get the same.
  uint64_t weights_hash() const;
  int64_t batch_size() const;  // of evaluation: the run's micro-batch
  // Batches in the order of the data set, each sample once.
  data::Pipeline pipeline(int64_t batch_size) const;
  // The samples of this rank, in batches of evaluation: whole ones but for the last of the data set.
  OwnRange own_samples() const;
  // Autocast as in training; no gradient. float32 out. Ranks that share a sample call it together, with whole samples, and get
  // whole predictions.
  at::Tensor predict(const data::Batch& batch) const;
  // The same for several batches, on which stages work side by side.
  std::vector<at::Tensor> predict(const std::vector<data::Batch>& batches) const;
  // The same for inputs on the device, with the key of their dropout.
  at::Tensor predict(const at::Tensor& input, const model::ForwardContext& context) const;
  // The same with gradients of the tensors that require one; for a process that has the whole model.
  at::Tensor forward(const at::Tensor& input, const model::ForwardContext& context) const;
  const model::ModelPtr& model() const { return model_; }
  // Applies dropout and drop-path as in training from here on.
  void enable_dropout() { model_->train(); }
  c10::Device device() const { return device_; }
  // (B) losses of predictions that predict() gave.
  bool has_holes() const;  // points of a target may have no value: they are NaN
  at::Tensor losses(const at::Tensor& prediction, const at::Tensor& target) const;

  // Every sample once, over all replicas. `time_mean` as read_time_mean() gave it. `progress` is told how many of own_samples()
  // are done.
  Scores score(const at::Tensor& time_mean, const std::function<void(int64_t)>& progress) const;

 private:
  void build(const Registries& registries, const ModelChoice& choice);
  void build_part(const Registries& registries);
  void load_weights(const ModelChoice& choice);
  void load_average(const CheckpointGroup& weights);
  std::filesystem::path found_by_first(const std::filesystem::path& found) const;
  void load_part(const CheckpointGroup& weights, const TensorLayout& layout);
  void learn_shapes();
  const parallel::Group& stages() const { return groups_.along(parallel::Axis::Pp); }
  at::Tensor own_part(const at::Tensor& whole) const;
  model::ForwardContext context_of(const data::Batch& batch) const;
  data::Batch next_of(data::Pipeline& batches) const;

  config::RunConfig config_;
  c10::Device device_;
  std::unique_ptr<ProcessSession> session_;  // outlives the model; null where it does not keep its settings
  std::unique_ptr<data::Dataset> dataset_;
  model::ModelPtr model_;
  parallel::ParamTable table_;  // what of the model is here
  parallel::Group world_;
  parallel::MeshGroups groups_;
  SampleShard shard_;                                   // what of each sample this rank's part of the model takes
  std::unique_ptr<parallel::PipelineEngine> pipeline_;  // null where no stages divide the model
  LossPtr loss_;
  std::filesystem::path checkpoint_;
  int64_t step_ = 0;
  std::function<void(const std::string&)> report_;
};

}  // namespace welkin::train
