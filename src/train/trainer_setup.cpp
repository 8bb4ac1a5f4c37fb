// SPDX-License-Identifier: Apache-2.0
// From a configuration to a trainer that can step: folder, data, model, optimizer, state.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>

#include "config/paths.h"
#include "config/switches.h"
#include "core/error.h"
#include "core/host.h"
#include "core/text.h"
#include "data/stage.h"
#include "model/describe.h"
#include "train/device.h"
#include "train/model_setup.h"
#include "train/run_rules.h"
#include "train/throughput.h"
#include "train/trainer.h"

namespace welkin::train {
namespace {

// The U-Net tutorials' loaders keep a shorter last batch, the ViT's drop it.
bool drops_last_batch(const config::RunConfig& config) { return config.data.dataset != "nbody"; }

void check_batch(const config::RunConfig& config, int64_t num_samples, const char* split) {
  if (num_samples >= config.loop.global_batch_size) return;
  throw ConfigError("train",
                    cat("the batch is larger than the data: global_batch_size=", config.loop.global_batch_size, ", ", split,
                        " samples=", num_samples),
                    "Take a smaller global_batch_size, or more data");
}

void check_samples(const data::Dataset& dataset, const char* split) {
  if (dataset.size() > 0) return;
  throw DataError("train", cat("there are no samples: split=", split), "Check the paths and the limits of the configuration");
}

}  // namespace

// All that the user may have got wrong is found before anything is written.
void Trainer::open_datasets() {
  configure_torch(config_);
  device_ = choose_device(config_.loop.device);
  config::check_paths(config_);
  folder_.check(config_, /*world_size=*/1, [this](const std::string& note) { folder_note_ = note; });
  const DatasetFactory& open = context_.registries.datasets.at(config_.data.dataset);
  const config::RunConfig config = data::staged(config_, [this](const std::string& line) { context_.log.info(line); });
  train_data_ = open(config, data::Split::Train);
  valid_data_ = open(config, data::Split::Valid);
  check_batch(config_, train_data_->size(), "training");
  check_samples(*valid_data_, "validation");
  if (validation_drops_last(config_)) check_batch(config_, valid_data_->size(), "validation");
}

void Trainer::open_folder() {
  folder_.make();
  context_.log.open_file(folder_.log_file());
  log_configuration(context_.log, context_.resolved);
  for (const std::string& note : context_.resolved.notes) context_.log.info(note);
  if (!folder_note_.empty()) context_.log.info(folder_note_);
  const auto kind = device_.is_cuda() ? config::DeviceKind::Cuda : config::DeviceKind::Cpu;
  for (const std::string& note : config::switch_notes(config_, kind)) context_.log.info(note);
  context_.log.info(config::backend_note(context_.resolved, kind));
}

void Trainer::start_loader() {
  context_.log.info("rank 0, begin data loader init");
  for (const data::Dataset* dataset : {train_data_.get(), valid_data_.get()}) {
    for (const std::string& line : dataset->describe()) context_.log.info(line);
  }
  data::PipelineOptions options = pipeline_options(config_, device_, drops_last_batch(config_));
  options.report = [this](const std::string& event) { context_.log.warning(event); };
  const int64_t before = cpu_memory_in_use();
  pipeline_ = std::make_unique<data::Pipeline>(
      *train_data_, data::Sampler(train_data_->size(), data::Order::Shuffled, config_.loop.seed), std::move(options));
  buffer_bytes_ += cpu_memory_in_use() - before;
  length_ = run_length(config_, train_data_->size(), pipeline_->steps_per_epoch());
  samples_per_epoch_ = std::min(train_data_->size(), length_.steps_per_epoch * config_.loop.global_batch_size);
  const bool names_loader = config_.model.model == "unet3d" && config_.data.data_loader_config;
  context_.log.info(
      cat("rank 0, data loader initialized", names_loader ? " with config " + *config_.data.data_loader_config : ""));
  context_.log.info(cat("Reading: ", config_.data.num_data_workers, " threads into ", format_bytes(pipeline_->buffer_bytes()),
                        " of host buffers"));
}

void Trainer::build_model() {
  model_ = train::build_model(context_.registries, config_, train_data_->spec(), device_);
  model_->train();
  table_ = parallel::ParamTable::of(*model_);
  table_.check_strides();
  loss_ = context_.registries.losses.at(config_.loss.loss)(config_);
  const int64_t before = cpu_memory_in_use();
  validator_ = std::make_unique<Validator>(*valid_data_, *model_, *loss_, config_, device_);
  buffer_bytes_ += cpu_memory_in_use() - before;
}

void Trainer::build_optimizer() {
  optimizer_ = context_.registries.optimizers.at(config_.optimizer.optimizer)(config_, optimizer_parameters(table_));
  scaler_ = std::make_unique<LossScaler>(config_.precision, device_);
  const SchedulePtr schedule = context_.registries.schedules.at(config_.schedule.schedule)(config_, length_);
  const auto count = config_.rules.rate_rule == "iterations" ? RateCount::Iterations : RateCount::Updates;
  rates_ = std::make_unique<RateTable>(*schedule, length_.total_steps, device_, count);
  meter_ = std::make_unique<EpochMeter>(device_);
  nonfinite_ = std::make_unique<NonFiniteWatch>(
      config_.loop.on_nonfinite, [this](const std::string& event) { context_.log.warning(event); },
      [this] { return last_checkpoint(); });
  step_ = at::full({}, int64_t{0}, at::TensorOptions(at::kLong).device(device_));
  last_rate_ = rates_->current();
}

// What to go on from; nothing where the run begins.
std::optional<Checkpoint> Trainer::find_checkpoint() {
  if (!config_.loop.resume) {
    if (const auto aside = store_.move_aside()) {
      context_.log.info(cat("Checkpoints of an earlier run were moved to ", aside->string()));
    }
    return {};
  }
  auto checkpoint = store_.newest_good([this](const std::string& damage) { context_.log.warning(damage); });
  if (checkpoint) return checkpoint;
  if (const size_t damaged = store_.steps().size(); damaged > 0) {
    throw CheckpointError("checkpoint",
                          cat("no checkpoint of the run is whole: path=", store_.folder().string(), ", damaged=", damaged),
                          "Restore one from a copy, or start over without --resume, which moves them aside");
  }
  context_.log.info("There is no checkpoint to resume from: the run starts from the beginning");
  return {};
}

void Trainer::start_or_resume() {
  const auto checkpoint = find_checkpoint();
  if (checkpoint) load(*checkpoint);
  resumed_ = checkpoint.has_value();
  store_.continue_from(position_.iteration);
  folder_.claim(config_);
  // Scalars of this step are in the earlier files already, unless the epoch's end is still to be done.
  std::optional<int64_t> void_from;
  if (resumed_) void_from = position_.iteration + (epoch_is_complete() ? 0 : 1);
  journal_ = std::make_unique<Journal>(context_.log, config_, train_data_->spec(), folder_.event_folder(), void_from);
}

model::ModelCost Trainer::report_model() {
  const model::ModelCost cost = cost_of(context_.registries, config_, train_data_->spec());
  if (config_.model.model != "unet3d") context_.log.info(model::describe(*model_));
  context_.log.info(cat("Model ", config_.model.model, ": ", table_.num_parameters(), " parameters, seed ", config_.loop.seed,
                        ", device ", device_.str(), ", ", train_data_->size(), " training and ", valid_data_->size(),
                        " validation samples"));
  return cost;
}

void Trainer::report_setup() {
  train_flops_ = report_model().train_flops;
  if (train_flops_ > 0) peak_flops_ = measure_peak_flops(device_, config_.precision.amp_mode);
  context_.log.info("Starting Training Loop...");
  if (resumed_) context_.log.info(cat("Resumed at step ", position_.iteration, " from ", last_checkpoint()));
}

// In fp32, without autocast and gradient, in training mode; the pipeline then starts over, so no epoch misses a batch (unless
// first_batch_rule says that it does).
double Trainer::first_batch_loss() {
  const at::NoGradGuard no_grad;
  double sum = 0;
  data::Batch batch;
  do {
    batch = pipeline_->next();
    const at::Tensor prediction =
        model_->forward(batch.input, {.seed = config_.loop.seed, .step = step_, .sample = batch.sample});
    sum += loss_->per_sample(prediction, batch.target).sum().item<double>() / static_cast<double>(batch.step_samples);
  } while (batch.micro + 1 < batch.num_micro);
  if (consumes_first_batch(config_)) {
    position_.step_in_epoch = 1;
  } else {
    pipeline_->resume({.epoch = 0, .step = 0});
  }
  return sum;
}

void Trainer::report_initial_losses() {
  EpochReport train;
  train.loss = first_batch_loss();
  journal_->initial(train, validator_->first_batch());
}

}  // namespace welkin::train
