// SPDX-License-Identifier: Apache-2.0
#include "train/run/run_data.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <span>
#include <utility>

#include "config/schema/batch_plan.h"
#include "core/error.h"
#include "core/process/host.h"
#include "core/text.h"
#include "data/datasets/stage.h"
#include "data/sample/epoch_plan.h"
#include "parallel/comm/collectives.h"
#include "train/device/device.h"
#include "train/learn/input_check.h"
#include "train/rollout/curriculum.h"
#include "train/run/run_rules.h"

namespace welkin::train {
namespace {

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
  if (batch % config::kInvariantUnits == 0 && config::kInvariantUnits % replicas.size() == 0 && is_whole) return;
  throw ConfigError(
      "train",
      cat("rank_invariant needs 1, 2, 4 or 8 data-parallel ranks, and whole batches of a multiple of 8: ranks=", replicas.size(),
          ", global_batch_size=", batch, ", training samples=", train.size(), ", validation samples=", valid.size()),
      "Choose a global_batch_size that is a multiple of 8 and divides both numbers of samples");
}

// The line of SC23's DALI loader for several shards.
std::string shard_line(const config::RunConfig& config, const parallel::Group& replicas, int64_t samples) {
  if (config.data.data_loader_config != config::Loader::Dali || replicas.size() == 1) return {};
  const int64_t sharded = data::sharded_samples(samples, replicas.size(), config.rules.shard_rule);
  return cat("Using shards of size ", sharded / replicas.size(), " per rank");
}

// Copying files may take longer than a batch system waits after a signal.
void check_interrupt(const InterruptWatch& interrupt) {
  if (!interrupt.requested()) return;
  throw Interrupted("train", cat("interrupted while the data were staged, before training: signal=", interrupt.signal_number()),
                    "Start it again: it goes on with the copies");
}

void check_samples(const data::Dataset& dataset, const char* split) {
  if (dataset.size() > 0) return;
  throw DataError("train", cat("there are no samples: split=", split), "Check the paths and the limits of the configuration");
}

// Checks fields, by the statistics of training. The first batch of training is checked when it is read.
void check_first_sample(const data::Dataset& dataset) {
  const data::SampleSpec& spec = dataset.spec();
  if (spec.input_mean.empty() || spec.input.shape.size() != 3 || !dataset.transforms()) return;
  const at::Tensor input = at::empty({1, spec.input.shape[0], spec.input.shape[1], spec.input.shape[2]}, at::kFloat);
  const std::span<float> values(input.mutable_data_ptr<float>(), static_cast<size_t>(input.numel()));
  dataset.read(dataset.plan({.index = 0}, data::whole(spec)), {.input = values, .target = {}, .transformed = true});
  check_normalised(input, spec);
}

// A state belongs to a place of the batch.
void check_replay(const config::RunConfig& config, const data::Dataset& train, bool drops_last) {
  if (config.loss.replay_buffer == 0) return;
  const auto refuse = [&](std::string_view what, std::string_view remedy) {
    throw ConfigError("train", cat(what, ": replay_buffer=", config.loss.replay_buffer), std::string(remedy));
  };
  if (!drops_last) refuse("places of the batch change where the last one of an epoch is shorter", "Leave replay_buffer out");
  if (train.spec().target.shape.size() != 3) refuse("boxes have no steps in time", "Leave replay_buffer out");
}

}  // namespace

RunData::RunData(const TrainerContext& context)
    : context_(context), config_(context.resolved.config), notes_(context.world, context.log) {}

void RunData::open(c10::Device device) {
  device_ = device;
  const DatasetEntry& entry = context_.registries.datasets.at(config_.data.dataset);
  drops_last_ = entry.drops_last;
  stream_ = entry.stream;
  const auto report = [this](const std::string& line) { context_.log.info(line); };
  const auto before_block = [this] { check_interrupt(context_.interrupt); };
  const config::RunConfig config = for_device(data::staged(config_, report, before_block), device_);
  train_ = entry.open(config, data::Split::Train);
  valid_ = entry.open(config, data::Split::Valid);
  files_ = train_->fingerprints();
  if (train::has_sequences(config_, train_->spec())) {
    steps_ = steps_at(config_.loss, 0, 0);
    sequences_ = train_->of_steps(steps_, config_.loss.multistep.most());
  }
  check_batch(config_, samples().size(), "training");
  check_samples(*valid_, "validation");
  if (!config_.data.allow_unnormalized) check_first_sample(*valid_);
}

void RunData::check(const Layout& layout) const {
  if (validation_drops_last(config_)) check_batch(config_, valid_->size(), "validation");
  if (config_.parallel.rank_invariant) check_units(config_, layout.replicas, samples(), *valid_, drops_last_);
  check_replay(config_, *train_, drops_last_);
}

ReadingEvents RunData::reading_events(const Layout& layout) {
  return {.report = [this](const std::string& note) { notes_.add(note); },
          .stalled = [this](const std::string& note) { context_.warn_at_once(note); },
          .agree = agreement_of(config_, layout.groups)};
}

RunLength RunData::start_loader(const Layout& layout, const observe::Tracer& tracer) {
  context_.log.info("rank 0, begin data loader init");
  log_data_sets(layout);
  data::PipelineOptions options = pipeline_options(config_, layout.replicas, device_, drops_last_, layout.shard.region());
  reading_events(layout).add_to(options);
  options.tracer = &tracer;
  if (stream_) options.num_workers = 0;  // reading ahead would draw pairs that a resumed run never sees
  region_ = options.region.value_or(data::whole(train_->spec())), rules_ = options.rules;
  loader_options_ = std::move(options);
  if (config_.loss.replay_buffer > 0) open_replay(layout);
  open_loader();
  const RunLength length = run_length(config_, samples().size(), loader_->steps_per_epoch());
  samples_per_epoch_ = std::min(samples().size(), length.steps_per_epoch * config_.loop.global_batch_size);
  log_loader();
  return length;
}

void RunData::open_loader() {
  data::Sampler sampler(samples().size(), data::Order::Shuffled, config_.loop.seed);
  if (replay_) {
    sampler =
        sampler.choosing([plan = replay_->plan()](int64_t epoch, int64_t position) { return plan.at(epoch, position).key; });
  }
  loader_ = std::make_unique<data::Pipeline>(samples(), sampler, loader_options_);
}

void RunData::open_replay(const Layout& layout) {
  const int64_t batch = config_.loop.global_batch_size, ranks = layout.replicas.size(), rank = layout.replicas.group_rank();
  const int64_t whole_steps = data::sharded_samples(train_->size(), ranks, config_.rules.shard_rule) / batch;
  const data::ReplayPlan plan(*train_, data::Sampler(train_->size(), data::Order::Shuffled, config_.loop.seed),
                              {.batch = batch,
                               .slots = config_.loss.replay_buffer,
                               .longest = config_.loss.replay_steps,
                               .steps_per_epoch = std::max<int64_t>(1, whole_steps),
                               .seed = config_.loop.seed});
  const int64_t lanes = batch / ranks;
  replay_ =
      std::make_unique<ReplayBuffer>(*train_, plan, config_, ReplayLanes{.first = rank * lanes, .count = lanes}, layout.shard,
                                     device_, ReplayStages{layout.groups.along(parallel::Axis::Pp), layout.input_readers});
  context_.log.info(cat("Replay buffer: ", config_.loss.replay_buffer, " states for each of ", batch, " samples, of rollouts of ",
                        config_.loss.replay_steps, " steps, ", format_bytes(static_cast<uint64_t>(replay_->bytes())),
                        " of this rank's host memory"));
}

bool RunData::wait_for_step(const std::function<bool()>& is_stopped, bool is_first) const {
  if (!stream_ || stream_->wait_for_step(is_stopped)) return true;
  if (is_stopped() || !is_first) return false;
  throw DataError("online",
                  cat("the pairs ended before the first step: pairs=", stream_->given(), ", held out for validation=",
                      stream_->options().held_out, ", global_batch_size=", config_.loop.global_batch_size),
                  "Hand over more, hold fewer out (limit_nsamples_val), or take a smaller batch");
}

void RunData::set_steps(int64_t steps) {
  if (!sequences_ || steps == steps_) return;
  const data::PipelineState place = loader_->state();
  loader_.reset();  // it reads the old samples
  steps_ = steps;
  sequences_ = train_->of_steps(steps_, config_.loss.multistep.most());
  open_loader();
  loader_->resume(place);
}

std::string RunData::own_nonfinite(const data::PipelineState& step) const {
  if (stream_) return {};  // a drawn pair is gone; each was checked when it came
  try {
    for (const data::SampleKey& key : loader_->keys_of(step)) {
      if (std::string found = data::first_nonfinite(samples(), key, region_, rules_); !found.empty()) return found;
    }
  } catch (const Error&) {
    // data that cannot be read again explain nothing
  }
  return {};
}

std::string RunData::first_nonfinite(const data::PipelineState& step) const {
  return first_text(context_.world, own_nonfinite(step));
}

void RunData::log_data_sets(const Layout& layout) const {
  for (const data::Dataset* dataset : {&samples(), static_cast<const data::Dataset*>(valid_.get())}) {
    for (const std::string& line : dataset->describe()) context_.log.info(line);
    if (const std::string line = shard_line(config_, layout.replicas, dataset->size()); !line.empty()) context_.log.info(line);
  }
  for (const std::string& line : data::notes_of({train_.get(), valid_.get()})) context_.log.info(line);
  for (const std::string& line : data::warnings_of({train_.get(), valid_.get()})) context_.log.warning(line);
}

void RunData::log_loader() const {
  const bool names_loader = config_.model.model == "unet3d" && config_.data.data_loader_config;
  context_.log.info(cat("rank 0, data loader initialized", names_loader ? " with config " : "",
                        names_loader ? name_of(*config_.data.data_loader_config) : ""));
  if (loader_->resident_bytes() > 0) {
    return context_.log.info(
        cat("Reading: all values are held on ", device_.str(), ", ", format_bytes(loader_->resident_bytes())));
  }
  context_.log.info(
      cat("Reading: ", loader_options_.num_workers, " threads into ", format_bytes(loader_->buffer_bytes()), " of host buffers"));
}

}  // namespace welkin::train
