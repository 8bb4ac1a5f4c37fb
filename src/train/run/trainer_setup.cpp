// SPDX-License-Identifier: Apache-2.0
// From a configuration to a trainer that can step: folder, data, model, optimizer, state.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "config/resolve/paths.h"
#include "config/resolve/switches.h"
#include "core/error.h"
#include "core/host.h"
#include "core/text.h"
#include "data/sample/epoch_plan.h"
#include "data/sets/stage.h"
#include "model/base/describe.h"
#include "parallel/comm/collectives.h"
#include "parallel/shard/shared_gradients.h"
#include "train/device/device.h"
#include "train/device/device_memory.h"
#include "train/device/kernel_choice.h"
#include "train/device/throughput.h"
#include "train/run/run_rules.h"
#include "train/run/trainer.h"
#include "train/step/model_setup.h"
#include "train/step/step_graph.h"

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

// Units are eighths of a batch, so every batch must be whole, and the ranks must share eight.
void check_units(const config::RunConfig& config, const parallel::Group& replicas, const data::Dataset& train,
                 const data::Dataset& valid, bool drops_last) {
  const int64_t batch = config.loop.global_batch_size;
  const bool is_whole = (drops_last || train.size() % batch == 0) && valid.size() % batch == 0;
  if (batch % kInvariantUnits == 0 && kInvariantUnits % replicas.size() == 0 && is_whole) return;
  throw ConfigError(
      "train",
      cat("rank_invariant needs 1, 2, 4 or 8 data-parallel ranks, and whole batches of a multiple of 8: ranks=", replicas.size(),
          ", global_batch_size=", batch, ", training samples=", train.size(), ", validation samples=", valid.size()),
      "Choose a global_batch_size that is a multiple of 8 and divides both numbers of samples");
}

// What SC23's DALI loader says where there are several shards.
std::string shard_line(const config::RunConfig& config, const parallel::Group& replicas, int64_t samples) {
  if (config.data.data_loader_config != "dali" || replicas.size() == 1) return {};
  const int64_t dealt = data::dealt_samples(samples, replicas.size(), data::parse_dealing(config.rules.shard_rule));
  return cat("Using shards of size ", dealt / replicas.size(), " per rank");
}

void check_samples(const data::Dataset& dataset, const char* split) {
  if (dataset.size() > 0) return;
  throw DataError("train", cat("there are no samples: split=", split), "Check the paths and the limits of the configuration");
}

}  // namespace

SetupSource Trainer::setup_source() const {
  return {config_, context_.registries, train_data_->spec(), device_, context_.world.everyone(), buffer_bytes_};
}

// All that the user may have got wrong is found before anything is written.
void Trainer::open_datasets(parallel::MeshGroups groups) {
  configure_torch(config_);
  device_ = choose_device(config_.loop.device, context_.world.place().local_rank);
  limit_memory(device_, config_.backend.memory_limit_gib);
  check_cuda_graph(config_, device_);
  config::check_paths(config_);
  folder_.check(config_, context_.world.size(), [this](const std::string& note) { folder_note_ = note; });
  const DatasetFactory& open = context_.registries.datasets.at(config_.data.dataset);
  const config::RunConfig config =
      for_device(data::staged(config_, [this](const std::string& line) { context_.log.info(line); }), device_);
  train_data_ = open(config, data::Split::Train);
  valid_data_ = open(config, data::Split::Valid);
  data_files_ = train_data_->fingerprints();
  check_batch(config_, train_data_->size(), "training");
  check_samples(*valid_data_, "validation");
  layout_ = make_layout(std::move(groups), setup_source());  // refuses what does not divide before anything is written
  if (validation_drops_last(config_)) check_batch(config_, valid_data_->size(), "validation");
  if (config_.parallel.rank_invariant)
    check_units(config_, layout_.replicas, *train_data_, *valid_data_, drops_last_batch(config_));
  parallel::barrier(context_.world.everyone());  // all have looked at the folder before the first writes there
}

void Trainer::open_folder() {
  if (context_.world.leads()) {
    folder_.make();
    lock_.emplace(folder_.path());
  }
  context_.log.open_file(folder_.log_file());
  log_configuration(context_.log, context_.resolved);
  for (const std::string& note : context_.resolved.notes) context_.log.info(note);
  if (!folder_note_.empty()) context_.log.info(folder_note_);
  const auto kind = device_.is_cuda() ? config::DeviceKind::Cuda : config::DeviceKind::Cpu;
  for (const std::string& note : config::switch_notes(config_, kind)) context_.log.info(note);
  context_.log.info(config::backend_note(context_.resolved, kind));
}

void Trainer::start_profile() {
  profile_ =
      std::make_unique<ProfileSession>(context_.profile, config_,
                                       ProfileSession::Place{.folder = folder_.path() / "profile",
                                                             .rank = static_cast<int>(context_.world.rank()),
                                                             .leads = context_.world.leads(),
                                                             .with_gpu = device_.is_cuda(),
                                                             .log = [this](const std::string& text) { context_.log.info(text); },
                                                             .warn = spoken()},
                                       context_.span_recorder);
  context_.world.trace(&profile_->tracer());
}

std::function<void(const std::string&)> Trainer::spoken() {
  if (context_.say_now) return context_.say_now;
  return [this](const std::string& note) { context_.log.warning(note); };
}

ReadingEvents Trainer::reading_events() {
  return {.report = [this](const std::string& note) { data_notes_.add(note); },
          .stalled = spoken(),
          .agree = agreement_of(config_, layout_.groups)};
}

void Trainer::start_loader() {
  context_.log.info("rank 0, begin data loader init");
  for (const data::Dataset* dataset : {train_data_.get(), valid_data_.get()}) {
    for (const std::string& line : dataset->describe()) context_.log.info(line);
    if (const std::string line = shard_line(config_, layout_.replicas, dataset->size()); !line.empty()) context_.log.info(line);
  }
  data::PipelineOptions options =
      pipeline_options(config_, layout_.replicas, device_, drops_last_batch(config_), layout_.share.region());
  reading_events().add_to(options);
  options.tracer = &profile_->tracer();
  const int64_t before = cpu_memory_in_use();
  pipeline_ = std::make_unique<data::Pipeline>(
      *train_data_, data::Sampler(train_data_->size(), data::Order::Shuffled, config_.loop.seed), std::move(options));
  buffer_bytes_ += cpu_memory_in_use() - before;
  length_ = run_length(config_, train_data_->size(), pipeline_->steps_per_epoch());
  samples_per_epoch_ = std::min(train_data_->size(), length_.steps_per_epoch * config_.loop.global_batch_size);
  const bool names_loader = config_.model.model == "unet3d" && config_.data.data_loader_config;
  context_.log.info(
      cat("rank 0, data loader initialized", names_loader ? " with config " + *config_.data.data_loader_config : ""));
  if (pipeline_->resident_bytes() > 0) {
    return context_.log.info(
        cat("Reading: all values are held on ", device_.str(), ", ", format_bytes(pipeline_->resident_bytes())));
  }
  context_.log.info(cat("Reading: ", config_.data.num_data_workers, " threads into ", format_bytes(pipeline_->buffer_bytes()),
                        " of host buffers"));
}

void Trainer::build_setup() {
  setup_ = make_setup(layout_, setup_source(), length_);
  if (!setup_->attention_note.empty()) context_.log.info(setup_->attention_note);
  last_rate_ = setup_->rates->current();
  const int64_t before = cpu_memory_in_use();
  validator_ = std::make_unique<Validator>(*valid_data_, *setup_->model, *setup_->loss, config_, layout_.replicas, layout_.share,
                                           device_, reading_events());
  buffer_bytes_ += cpu_memory_in_use() - before;
}

void Trainer::build_step() {
  step_ = make_step(*setup_, config_,
                    {.device = device_,
                     .everyone = context_.world.everyone(),
                     .dataset_size = train_data_->size(),
                     .tracer = &profile_->tracer(),
                     .pending_notes = [this] { return static_cast<double>(data_notes_.num_waiting()); },
                     .on_forward = [this](const data::Batch& batch, const at::Tensor& output) { after_forward(batch, output); },
                     .wants_forward = [this](const data::Batch& /*batch*/) { return draws_this_step() || logs_this_step(); },
                     .recorder = graph_recorder(config_, device_)});
  meter_ = std::make_unique<EpochMeter>(device_);
  nonfinite_ = std::make_unique<NonFiniteWatch>(
      config_.loop.on_nonfinite, [this](const std::string& event) { context_.log.warning(event); },
      [this] { return last_checkpoint(); });
}

// What to go on from; nothing where the run begins. The leader chooses: files may change while others look.
std::optional<Checkpoint> Trainer::find_checkpoint() {
  std::optional<Checkpoint> own;
  if (context_.world.leads()) own = choose_checkpoint();
  const at::Tensor step = at::full({1}, own ? own->index().position.iteration : int64_t{-1}, at::kLong);
  parallel::broadcast(context_.world.everyone(), step, 0);
  if (context_.world.leads() || step.item<int64_t>() < 0) return own;
  return Checkpoint(store_.path_of(step.item<int64_t>()));
}

std::optional<Checkpoint> Trainer::choose_checkpoint() {
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
  if (checkpoint) {
    load(*checkpoint);
  } else if (!context_.init_from.empty()) {
    load_initial_weights();
  }
  resumed_ = checkpoint.has_value();
  parallel::barrier(context_.world.everyone());
  if (context_.world.size() > 1) parallel::check_replicas(setup_->table, layout_.groups, "at the start");
  if (context_.world.leads()) {
    store_.continue_from(position_.iteration);
    folder_.claim(config_);
  }
  // Scalars of this step are in the earlier files already, unless the epoch's end is still to be done.
  std::optional<int64_t> void_from;
  if (resumed_) void_from = position_.iteration + (epoch_is_complete() ? 0 : 1);
  const auto events = context_.world.leads() ? std::optional(folder_.event_folder()) : std::nullopt;
  journal_ = std::make_unique<Journal>(context_.log, config_, train_data_->spec(), events, void_from);
}

model::ModelCost Trainer::report_model() {
  model::ModelCost cost = cost_of(context_.registries, config_, train_data_->spec());
  if (config_.model.model != "unet3d") context_.log.info(model::describe(*setup_->model));
  context_.log.info(cat("Model ", config_.model.model, ": ", setup_->table.num_parameters(), " parameters, seed ",
                        config_.loop.seed, ", device ", device_.str(), ", ", train_data_->size(), " training and ",
                        valid_data_->size(), " validation samples"));
  return cost;
}

// The buckets are those of the plan: they are cut anew after the first step, in the order in which gradients came.
void Trainer::report_ranks() {
  if (context_.world.size() == 1) return;
  context_.log.info(cat("Ranks: ", context_.world.size(), " on ", context_.world.place().num_nodes, " node(s) from ",
                        context_.world.place().launcher, ", data parallel ", layout_.replicas.size(), ", local batch ",
                        config_.loop.local_batch_size.value_or(0)));
  if (layout_.plan) context_.log.info(cat("Groups of ranks:\n", layout_.groups.text()));
  if (!layout_.context_note.empty()) context_.log.info(layout_.context_note);
  if (config_.parallel.noddp) return context_.log.info("Gradients are not exchanged (noddp)");
  if (setup_->unit_sum) return context_.log.info("Gradients of eighths of the batch are summed in a fixed tree (rank_invariant)");
  context_.log.info(cat("Gradients are exchanged in ", parallel::describe(setup_->data_parallel->buckets())));
}

void Trainer::report_setup() {
  train_flops_ = report_model().train_flops;
  report_ranks();
  if (layout_.plan) context_.log.info(scaffolding_memory_line(device_));
  context_.log.info(kernels_line(kernel_choice(config_, device_)));
  if (!all_steps_done()) {
    const int64_t first = place_in_run();
    profile_->plan({.steps_per_epoch = length_.steps_per_epoch,
                    .first = first,
                    .last = first + length_.total_steps - position_.iteration - 1});
  }
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
    if (batch.input.size(0) == 0) continue;
    const at::Tensor prediction =
        setup_->model->forward(batch.input, {.seed = config_.loop.seed, .step = setup_->counter, .sample = batch.sample});
    sum += layout_.share.losses(*setup_->loss, prediction, batch.target).sum().item<double>();
  } while (batch.micro + 1 < batch.num_micro);
  const int64_t samples = samples_of_step(config_, layout_.replicas.size(), train_data_->size(), batch.step);
  if (consumes_first_batch(config_)) {
    position_.step_in_epoch = 1;
  } else {
    pipeline_->resume({.epoch = 0, .step = 0});
  }
  const at::Tensor total = parallel::all_reduce(layout_.replicas, at::full({1}, sum, at::kDouble));
  return total.item<double>() / static_cast<double>(samples);
}

void Trainer::report_initial_losses() {
  EpochReport train;
  train.loss = first_batch_loss();
  journal_->initial(train, validator_->first_batch());
}

}  // namespace welkin::train
