// SPDX-License-Identifier: Apache-2.0
#include "train/evaluate/trained_model.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/text.h"
#include "data/sample/likeness.h"
#include "ops/base/autocast.h"
#include "train/checkpoint/checkpoint_store.h"
#include "train/device/device.h"
#include "train/device/device_memory.h"
#include "train/device/memory_report.h"
#include "train/interchange/import_state.h"
#include "train/interchange/model_package.h"
#include "train/interchange/sample_spec_json.h"
#include "train/learn/precision.h"
#include "train/learn/weighted_loss.h"
#include "train/run/run_folder.h"
#include "train/run/validation.h"
#include "train/step/model_setup.h"

namespace welkin::train {
namespace {

namespace fs = std::filesystem;

// Otherwise a word, or the number of a step.
bool names_file(const std::string& choice) {
  return choice.find('/') != std::string::npos || choice.ends_with(".pt") || choice.ends_with(".pth") ||
         choice.ends_with(".tar") || choice.ends_with(".safetensors");
}

// The statistics of a run are applied by the place of a channel. Runs of earlier versions do not say their data.
void check_like_run(const std::filesystem::path& run_folder, const data::SampleSpec& spec) {
  constexpr uint64_t kLargestFile = uint64_t{64} << 20;
  const std::filesystem::path file = run_folder / RunFolder::kDataFile;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored) || std::filesystem::file_size(file, ignored) > kLargestFile) return;
  const data::SampleSpec trained = interchange::sample_spec_from_json(
      read_file(file, kLargestFile),
      {.path = file.string(),
       .component = "data",
       .remedy = "Restore it from a copy of the run; where it is deleted data are taken without this check"});
  const std::string difference = data::difference_of_samples(trained, spec);
  if (difference.empty()) return;
  throw DataError(
      "data",
      cat("these data differ from those that the run was trained on: run=", run_folder.string(), ", difference in ", difference),
      "Give data of the same channels, units, grid and time step: welkin data ingest makes them");
}

}  // namespace

data::Split parse_split(const std::string& name) {
  if (name == "train") return data::Split::Train;
  if (name == "valid") return data::Split::Valid;
  if (name == "test") return data::Split::Test;
  throw ConfigError("data", cat("unknown part of the data: split=", name), "Choose train, valid or test");
}

TrainedModel::TrainedModel(const Registries& registries, const config::RunConfig& config, const ModelChoice& choice)
    : TrainedModel(registries, config, choice, nullptr) {}

TrainedModel::TrainedModel(const Registries& registries, const config::RunConfig& config, const ModelChoice& choice,
                           std::unique_ptr<data::Dataset> dataset)
    : config_(config),
      device_(choose_device(config.loop.device, choice.local_rank, choice.local_size)),
      session_(std::make_unique<ProcessSession>(config_, device_)),
      dataset_(std::move(dataset)),
      report_(choice.report) {
  if (!names_file(choice.checkpoint)) checkpoint_ = find_checkpoint(choice.run_folder, choice.checkpoint);
  if (!dataset_) dataset_ = registries.datasets.at(config_.data.dataset).open(config_, choice.split);
  if (interchange::is_package(choice.run_folder)) interchange::ModelPackage(choice.run_folder).check_fits(dataset_->spec());
  check_like_run(choice.run_folder, dataset_->spec());
  if (dataset_->size() == 0)
    throw DataError("data", "there are no samples in this part of the data", "Check its path and limits");
  model_ = build_model(registries, config_, dataset_->spec(), device_);
  load_weights(choice);
  model_->eval();
  loss_ = make_loss(registries.losses.at(config_.loss.loss), config_, dataset_->spec(), device_);
  if (!choice.keeps_settings) session_.reset();
}

int64_t TrainedModel::weight_bytes() const {
  return known_memory(parallel::ParamTable::of(*model_), nullptr, /*buffers=*/0, /*has_buffers=*/true).weights;
}

uint64_t TrainedModel::weights_hash() const {
  Xxh3 hash;
  const auto add = [&hash](const auto& tensors) {
    for (const auto& item : tensors) {
      const at::Tensor values = item.value().detach().cpu().contiguous();
      hash.update({static_cast<const std::byte*>(values.const_data_ptr()), values.nbytes()});
    }
  };
  add(model_->named_parameters());
  add(model_->named_buffers());
  return hash.digest();
}

int64_t TrainedModel::batch_size() const {
  return pipeline_options(config_, parallel::Group(), device_, /*drop_last=*/false).micro_batch;
}

void TrainedModel::load_weights(const ModelChoice& choice) {
  const CheckpointGroup weights = model_group(parallel::ParamTable::of(*model_), *model_);
  if (names_file(choice.checkpoint)) checkpoint_ = choice.checkpoint;
  if (choice.averaged) return load_average(weights);
  if (names_file(choice.checkpoint)) {
    const interchange::State state = interchange::open_state(checkpoint_);
    interchange::load_weights(state, weights);
    step_ = state.iteration.value_or(0);
  } else {
    const Checkpoint checkpoint(checkpoint_);
    checkpoint.read_group(weights);
    step_ = checkpoint.index().position.iteration;
  }
}

// Parameters that were not trained and buffers have no average of their own.
void TrainedModel::load_average(const CheckpointGroup& weights) {
  const interchange::State state = interchange::averaged(interchange::open_state(checkpoint_));
  interchange::load_weights(state, weights);
  step_ = state.iteration.value_or(0);
}

data::Pipeline TrainedModel::pipeline(int64_t batch_size) const {
  data::PipelineOptions options = pipeline_options(config_, parallel::Group(), device_, /*drop_last=*/false);
  options.resident = false;  // each sample is read once
  options.report = options.stalled = report_;
  options.global_batch = options.micro_batch = std::min(batch_size, dataset_->size());
  return {*dataset_, data::Sampler(dataset_->size(), data::Order::Sequential, config_.loop.seed), options};
}

at::Tensor TrainedModel::predict(const data::Batch& batch) const {
  return predict(batch.input, {.seed = config_.loop.seed, .step = at::zeros({}, batch.sample.options()), .sample = batch.sample});
}

at::Tensor TrainedModel::predict(const at::Tensor& input, const model::ForwardContext& context) const {
  const at::NoGradGuard no_grad;
  return forward(input, context);
}

at::Tensor TrainedModel::forward(const at::Tensor& input, const model::ForwardContext& context) const {
  std::optional<ProcessSession> meanwhile;
  if (!session_) meanwhile.emplace(config_, device_);
  const ops::AutocastGuard autocast(device_.type(), autocast_dtype(config_.precision.amp_mode));
  return model_->forward(input, context).to(at::kFloat);
}

bool TrainedModel::has_holes() const {
  return data::nan_policy_for(dataset_->spec(), config_.data.nan_policy) == data::NanPolicy::Hole;
}

at::Tensor TrainedModel::losses(const at::Tensor& prediction, const at::Tensor& target) const {
  const at::NoGradGuard no_grad;
  return loss_->per_sample(prediction, target);
}

Scores TrainedModel::score(const at::Tensor& time_mean, const std::function<void(int64_t)>& progress) const {
  data::Pipeline batches = pipeline(batch_size());
  ScoreSums sums(dataset_->spec(), time_mean, has_holes());
  for (int64_t done = 0; done < dataset_->size();) {
    const data::Batch batch = batches.next();
    const at::Tensor prediction = predict(batch);
    sums.add(batch.input, batch.target, prediction, losses(prediction, batch.target));
    progress(done += batch.input.size(0));
  }
  return sums.finish();
}

}  // namespace welkin::train
