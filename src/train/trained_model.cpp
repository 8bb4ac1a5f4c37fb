// SPDX-License-Identifier: Apache-2.0
#include "train/trained_model.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "core/error.h"
#include "core/text.h"
#include "ops/autocast.h"
#include "train/checkpoint_store.h"
#include "train/device.h"
#include "train/device_memory.h"
#include "train/interchange/import_state.h"
#include "train/memory_report.h"
#include "train/model_setup.h"
#include "train/precision.h"
#include "train/validation.h"

namespace welkin::train {
namespace {

namespace fs = std::filesystem;

int64_t chosen_step(const CheckpointStore& store, const std::vector<int64_t>& steps, const std::string& choice) {
  if (choice == "newest") return steps.front();
  if (choice == "best") {
    const auto best = store.best();
    return best ? best->step : steps.front();
  }
  for (const int64_t step : steps) {
    if (std::to_string(step) == choice) return step;
  }
  throw CheckpointError("checkpoint",
                        cat("there is no such checkpoint: folder=", store.folder().string(), ", checkpoint=", choice),
                        cat("Choose best, newest, or a step: ", join(steps, ", ")));
}

// Otherwise a word, or the number of a step.
bool names_file(const std::string& choice) {
  return choice.find('/') != std::string::npos || choice.ends_with(".pt") || choice.ends_with(".pth") ||
         choice.ends_with(".tar") || choice.ends_with(".safetensors");
}

}  // namespace

data::Split parse_split(const std::string& name) {
  if (name == "train") return data::Split::Train;
  if (name == "valid") return data::Split::Valid;
  if (name == "test") return data::Split::Test;
  throw ConfigError("data", cat("unknown part of the data: split=", name), "Choose train, valid or test");
}

fs::path find_checkpoint(const fs::path& run_folder, const std::string& choice) {
  const CheckpointStore store(run_folder / "checkpoints");
  const std::vector<int64_t> steps = store.steps();
  if (steps.empty()) {
    throw CheckpointError("checkpoint", cat("the run has no checkpoint: path=", run_folder.string()),
                          "Give the folder of a run that has saved one (<expdir>/<config>/<W>GPU/<run_num>)");
  }
  return store.path_of(chosen_step(store, steps, choice));
}

TrainedModel::TrainedModel(const Registries& registries, const config::RunConfig& config, const ModelChoice& choice)
    : config_(config), device_(choose_device(config.loop.device)), report_(choice.report) {
  configure_torch(config_);
  limit_memory(device_, config_.backend.memory_limit_gib);
  if (!names_file(choice.checkpoint)) checkpoint_ = find_checkpoint(choice.run_folder, choice.checkpoint);
  dataset_ = registries.datasets.at(config_.data.dataset)(config_, choice.split);
  if (dataset_->size() == 0)
    throw DataError("data", "there are no samples in this part of the data", "Check its path and limits");
  model_ = build_model(registries, config_, dataset_->spec(), device_);
  load_weights(choice);
  model_->eval();
  loss_ = registries.losses.at(config_.loss.loss)(config_);
}

int64_t TrainedModel::weight_bytes() const {
  return known_memory(parallel::ParamTable::of(*model_), nullptr, /*buffers=*/0, /*has_buffers=*/true).weights;
}

int64_t TrainedModel::batch_size() const {
  return pipeline_options(config_, parallel::Group(), device_, /*drop_last=*/false).micro_batch;
}

void TrainedModel::load_weights(const ModelChoice& choice) {
  const CheckpointGroup weights = model_group(parallel::ParamTable::of(*model_), *model_);
  if (names_file(choice.checkpoint)) {
    checkpoint_ = choice.checkpoint;
    const interchange::State state = interchange::open_state(checkpoint_);
    interchange::load_weights(state, weights);
    step_ = state.iteration.value_or(0);
  } else {
    const Checkpoint checkpoint(checkpoint_);
    checkpoint.read_group(weights);
    step_ = checkpoint.index().position.iteration;
  }
}

data::Pipeline TrainedModel::pipeline(int64_t batch_size) const {
  data::PipelineOptions options = pipeline_options(config_, parallel::Group(), device_, /*drop_last=*/false);
  options.resident = false;  // each sample is read once
  options.report = options.stalled = report_;
  options.global_batch = options.micro_batch = std::min(batch_size, dataset_->size());
  return {*dataset_, data::Sampler(dataset_->size(), data::Order::Sequential, config_.loop.seed), options};
}

at::Tensor TrainedModel::predict(const data::Batch& batch) const {
  const at::NoGradGuard no_grad;
  const ops::AutocastGuard autocast(device_.type(), autocast_dtype(config_.precision.amp_mode));
  const model::ForwardContext context{
      .seed = config_.loop.seed, .step = at::zeros({}, batch.sample.options()), .sample = batch.sample};
  return model_->forward(batch.input, context).to(at::kFloat);
}

at::Tensor TrainedModel::losses(const at::Tensor& prediction, const at::Tensor& target) const {
  const at::NoGradGuard no_grad;
  return loss_->per_sample(prediction, target);
}

Scores TrainedModel::score(const at::Tensor& time_mean, const std::function<void(int64_t)>& progress) const {
  data::Pipeline batches = pipeline(batch_size());
  ScoreSums sums(dataset_->spec(), time_mean);
  for (int64_t done = 0; done < dataset_->size();) {
    const data::Batch batch = batches.next();
    const at::Tensor prediction = predict(batch);
    sums.add(batch.input, batch.target, prediction, losses(prediction, batch.target));
    progress(done += batch.input.size(0));
  }
  return sums.finish();
}

}  // namespace welkin::train
