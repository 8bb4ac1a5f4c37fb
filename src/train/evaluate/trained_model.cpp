// SPDX-License-Identifier: Apache-2.0
#include "train/evaluate/trained_model.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "core/error.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/text.h"
#include "data/sample/likeness.h"
#include "ops/base/autocast.h"
#include "parallel/comm/collectives.h"
#include "train/checkpoint/checkpoint_store.h"
#include "train/checkpoint/shared_checkpoint.h"
#include "train/device/device.h"
#include "train/device/device_memory.h"
#include "train/device/memory_limit.h"
#include "train/device/memory_report.h"
#include "train/interchange/import_state.h"
#include "train/interchange/model_package.h"
#include "train/interchange/sample_spec_json.h"
#include "train/learn/precision.h"
#include "train/learn/weighted_loss.h"
#include "train/run/run_folder.h"
#include "train/run/validation.h"
#include "train/step/model_setup.h"
#include "train/step/stages.h"

namespace welkin::train {
namespace {

namespace fs = std::filesystem;

// Batches under way at once: stages idle for a third of the time at most, and a rank keeps that many.
constexpr int64_t kBatchesPerStage = 2;

class NoMemoryLimit {
 public:
  NoMemoryLimit() : limit_(cpu_memory_limit()) {
    if (limit_ > 0) limit_cpu_memory(0);
  }
  ~NoMemoryLimit() {
    if (limit_ > 0) limit_cpu_memory(limit_);
  }
  NoMemoryLimit(const NoMemoryLimit&) = delete;
  NoMemoryLimit& operator=(const NoMemoryLimit&) = delete;

 private:
  int64_t limit_;
};

// True for a file's name; other choices are a word, or the number of a step.
bool names_file(const std::string& choice) {
  return choice.find('/') != std::string::npos || choice.ends_with(".pt") || choice.ends_with(".pth") ||
         choice.ends_with(".tar") || choice.ends_with(".safetensors");
}

// One hash of the members' hashes, in their order; of a member alone its own.
uint64_t hash_of_members(const parallel::Group& group, uint64_t own) {
  if (group.size() == 1) return own;
  const at::Tensor part = at::full({1}, static_cast<int64_t>(own), at::kLong);
  const at::Tensor all = parallel::all_gather(group, part, 0, parallel::Lengths(static_cast<size_t>(group.size()), 1));
  Xxh3 hash;
  hash.update({static_cast<const std::byte*>(all.const_data_ptr()), all.nbytes()});
  return hash.digest();
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

bool is_first_of_replica(const parallel::MeshGroups& groups) {
  return groups.along(parallel::Axis::Tp).group_rank() == 0 && groups.along(parallel::kSampleParts).group_rank() == 0 &&
         groups.along(parallel::Axis::Pp).group_rank() == 0;
}

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
      world_(choice.world),
      groups_(choice.groups),
      report_(choice.report) {
  if (!names_file(choice.checkpoint)) checkpoint_ = found_by_first(find_checkpoint(choice.run_folder, choice.checkpoint));
  if (!dataset_) dataset_ = registries.datasets.at(config_.data.dataset).open(config_, choice.split);
  if (interchange::is_package(choice.run_folder)) interchange::ModelPackage(choice.run_folder).check_fits(dataset_->spec());
  check_like_run(choice.run_folder, dataset_->spec());
  if (dataset_->size() == 0)
    throw DataError("data", "there are no samples in this part of the data", "Check its path and limits");
  build(registries, choice);
  model_->eval();
  loss_ = make_loss(registries.losses.at(config_.loss.loss), config_, dataset_->spec(), device_);
  if (!choice.keeps_settings) session_.reset();
}

void TrainedModel::build(const Registries& registries, const ModelChoice& choice) {
  if (world_.size() > 1) {
    build_part(registries);
  } else {
    model_ = build_model(registries, config_, dataset_->spec(), device_);
    table_ = parallel::ParamTable::of(*model_);
  }
  load_weights(choice);
  if (pipeline_) learn_shapes();
}

// Weights have no values before they are read: memory that nobody has written to is not there, and other ranks' is let go. So a
// limit counts what is left.
void TrainedModel::build_part(const Registries& registries) {
  const at::NoGradGuard no_grad;
  const NoMemoryLimit meanwhile;
  config::RunConfig config = config_;
  config.model.dropout = 0.0;  // nothing is dropped: a plan need not refuse blocks that have no masks
  const SetupSource source{config, registries, dataset_->spec(), device_};
  model_ = registries.models.at(config_.model.model).build(config_.model, shape_of(dataset_->spec()));
  table_ = parallel::ParamTable::of(*model_);
  if (const auto plan = plan_of(groups_.mesh(), source)) {
    apply_plan(*plan, *model_, table_, groups_);
    shard_ = SampleShard(*plan, groups_, dataset_->spec());
  }
  if (stages().size() > 1) {
    pipeline_ = std::make_unique<parallel::PipelineEngine>(
        model_->segments(), stages(), parallel::PipelineOptions{.stages = cut_model(model_, source, stages().size())});
    pipeline_->keep_own(table_, /*tied=*/{});
  }
  if (!device_.is_cuda()) return;
  for (const parallel::ParamRow& row : table_.rows()) {
    row.local.set_data(in_memory_format(row.local.to(device_), config_.backend.channels_last));
  }
  for (at::Tensor& buffer : model_->buffers()) buffer.set_data(buffer.to(device_));
}

// Learns the shapes of the tensors that go from stage to stage.
void TrainedModel::learn_shapes() {
  model_->eval();
  std::vector<int64_t> sizes = dataset_->spec().input.shape;
  sizes.insert(sizes.begin(), 1);
  const auto options = at::TensorOptions(device_);
  const ops::AutocastGuard autocast(device_.type(), autocast_dtype(config_.precision.amp_mode));
  pipeline_->learn_shapes_together({own_part(at::zeros(sizes, options.dtype(at::kFloat))),
                                    {.seed = config_.loop.seed,
                                     .step = at::zeros({}, options.dtype(at::kLong)),
                                     .sample = at::zeros({1}, options.dtype(at::kLong))}});
}

int64_t TrainedModel::weight_bytes() const { return known_memory(table_, nullptr, /*buffers=*/0, /*has_buffers=*/true).weights; }

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
  uint64_t digest = hash.digest();
  for (const parallel::AxisSet axes :
       {parallel::AxisSet(parallel::Axis::Tp), parallel::kSampleParts, parallel::AxisSet(parallel::Axis::Pp)}) {
    digest = hash_of_members(groups_.along(axes), digest);
  }
  return digest;
}

int64_t TrainedModel::batch_size() const {
  return pipeline_options(config_, parallel::Group(), device_, /*drop_last=*/false).micro_batch;
}

void TrainedModel::load_weights(const ModelChoice& choice) {
  CheckpointGroup weights = model_group(table_, *model_);
  if (names_file(choice.checkpoint)) checkpoint_ = choice.checkpoint;
  const bool is_part = world_.size() > 1;
  const parallel::Group alone;
  const TensorLayout layout{.table = table_, .groups = groups_, .shards = alone, .stages = stages()};
  if (is_part && !choice.averaged && !names_file(choice.checkpoint)) return load_part(weights, layout);
  if (is_part) weights = with_places(weights, layout);
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

// The run may go on meanwhile, so that ranks find different checkpoints.
fs::path TrainedModel::found_by_first(const fs::path& found) const {
  if (world_.size() == 1) return found;
  const int64_t step = told_by_first(world_, std::stoll(found.filename().string().substr(std::strlen("step_"))));
  return CheckpointStore(found.parent_path()).path_of(step);
}

// The ranks look at the bytes of the files once between them, and each reads what it has.
void TrainedModel::load_part(const CheckpointGroup& weights, const TensorLayout& layout) {
  const Checkpoint checkpoint = open_shared_checkpoint(world_, checkpoint_);
  read_parts(checkpoint, weights, layout);
  step_ = checkpoint.index().position.iteration;
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

model::ForwardContext TrainedModel::context_of(const data::Batch& batch) const {
  return {.seed = config_.loop.seed, .step = at::zeros({}, batch.sample.options()), .sample = batch.sample};
}

at::Tensor TrainedModel::predict(const data::Batch& batch) const { return predict(batch.input, context_of(batch)); }

std::vector<at::Tensor> TrainedModel::predict(const std::vector<data::Batch>& batches) const {
  std::vector<at::Tensor> predictions;
  if (!pipeline_) {
    for (const data::Batch& batch : batches) predictions.push_back(predict(batch));
    return predictions;
  }
  std::vector<parallel::PipelineBatch> passes;
  for (const data::Batch& batch : batches) passes.push_back({own_part(batch.input), context_of(batch)});
  const ops::AutocastGuard autocast(device_.type(), autocast_dtype(config_.precision.amp_mode));
  for (const at::Tensor& output : pipeline_->forward(passes)) predictions.push_back(shard_.whole_fields(output.to(at::kFloat)));
  return predictions;
}

at::Tensor TrainedModel::predict(const at::Tensor& input, const model::ForwardContext& context) const {
  const at::NoGradGuard no_grad;
  return forward(input, context);
}

at::Tensor TrainedModel::forward(const at::Tensor& input, const model::ForwardContext& context) const {
  std::optional<ProcessSession> meanwhile;
  if (!session_) meanwhile.emplace(config_, device_);
  const ops::AutocastGuard autocast(device_.type(), autocast_dtype(config_.precision.amp_mode));
  const at::Tensor own = own_part(input);
  const at::Tensor output =
      pipeline_ ? pipeline_->forward(std::vector{parallel::PipelineBatch{own, context}}).front() : model_->forward(own, context);
  return shard_.whole_fields(output.to(at::kFloat));
}

at::Tensor TrainedModel::own_part(const at::Tensor& whole) const {
  const std::optional<data::Region> region = shard_.region();
  if (!region) return whole;
  at::Tensor part = whole;
  for (int64_t dim = 2; dim < whole.dim(); ++dim) {
    const auto axis = static_cast<size_t>(dim - 2);
    part = part.narrow(dim, region->begin[axis], region->extent[axis]);
  }
  return part.contiguous();
}

bool TrainedModel::has_holes() const {
  return data::nan_policy_for(dataset_->spec(), config_.data.nan_policy) == data::NanPolicy::Hole;
}

at::Tensor TrainedModel::losses(const at::Tensor& prediction, const at::Tensor& target) const {
  const at::NoGradGuard no_grad;
  return loss_->per_sample(prediction, target);
}

// A loader's buffers are valid until the call after next.
data::Batch TrainedModel::next_of(data::Pipeline& batches) const { return pipeline_ ? kept(batches.next()) : batches.next(); }

TrainedModel::OwnRange TrainedModel::own_of(int64_t count) const {
  const int64_t ranks = replicas().size(), rank = replicas().group_rank();
  const auto before = [&](int64_t place) { return (count * place + ranks - 1) / ranks; };  // of few, the first ranks have some
  return {before(rank), before(rank + 1)};
}

TrainedModel::OwnRange TrainedModel::own_samples() const {
  const int64_t samples = dataset_->size(), batch = std::min(batch_size(), samples);
  const OwnRange batches = own_of((samples + batch - 1) / batch);
  return {std::min(samples, batches.begin * batch), std::min(samples, batches.end * batch)};
}

Scores TrainedModel::score(const at::Tensor& time_mean, const std::function<void(int64_t)>& progress) const {
  data::Pipeline batches = pipeline(batch_size());
  ScoreSums sums(dataset_->spec(), time_mean, has_holes());
  const auto together = static_cast<size_t>(pipeline_ ? kBatchesPerStage * stages().size() : 1);
  const OwnRange own = own_samples();
  if (own.begin < own.end) batches.resume({.epoch = 0, .step = own.begin / std::min(batch_size(), dataset_->size())});
  for (int64_t done = own.begin, fetched = own.begin; done < own.end;) {
    std::vector<data::Batch> group;
    for (; group.size() < together && fetched < own.end; fetched += group.back().input.size(0)) {
      group.push_back(next_of(batches));
    }
    const std::vector<at::Tensor> predictions = predict(group);
    for (size_t i = 0; i < group.size(); ++i) {
      const data::Batch& batch = group[i];
      sums.add(batch.input, batch.target, predictions[i], losses(predictions[i], batch.target));
      done += batch.input.size(0);
      progress(done - own.begin);
    }
  }
  sums.add_up(replicas());
  Scores scores = sums.finish();
  check_has_points({scores});
  return scores;
}

}  // namespace welkin::train
