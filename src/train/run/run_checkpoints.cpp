// SPDX-License-Identifier: Apache-2.0
#include "train/run/run_checkpoints.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "config/print/print.h"
#include "core/text.h"
#include "data/storage/fingerprint.h"
#include "parallel/shard/model_parallel_gradients.h"
#include "train/checkpoint/shared_checkpoint.h"
#include "train/device/kernel_choice.h"
#include "train/monitor/validation_metric.h"
#include "train/replay/replay_checkpoint.h"
#include "train/step/model_setup.h"

namespace welkin::train {
namespace {

constexpr size_t kLeastVotedBytes = size_t{16} << 20;

void append(CheckpointGroup& group, const std::vector<NamedState>& states) {
  for (const NamedState& state : states) {
    group.tensors.push_back(
        {.name = state.name, .value = state.value, .run = state.run, .fetch = state.read, .store = state.write});
  }
}

CheckpointGroup group_of(const char* name, const std::vector<NamedState>& states) {
  CheckpointGroup group{.name = name, .tensors = {}};
  append(group, states);
  return group;
}

std::map<std::string, StoredFile> stored(const std::vector<data::FileFingerprint>& prints) {
  std::map<std::string, StoredFile> files;
  for (const data::FileFingerprint& print : prints) files[print.name] = {print.bytes, print.hash};
  return files;
}

}  // namespace

RunCheckpoints::RunCheckpoints(const TrainerContext& context, std::filesystem::path folder, TrainSetup& setup, EpochMeter& meter,
                               RunData& data, RunState& state, c10::Device device)
    : context_(context),
      config_(context.resolved.config),
      times_file_(folder.parent_path() / "checkpoint_times.json"),
      places_(context.world, config_.loop, folder),
      setup_(setup),
      meter_(meter),
      data_(data),
      state_(state),
      device_(device),
      writer_(context.world.world_group(), {.copies = config_.loop.checkpoint_async && config_.backend.memory_limit_gib == 0,
                                            .skips = config_.loop.checkpoint_overlap == config::CheckpointOverlap::Skip,
                                            .is_sharded = setup.is_sharded(),
                                            .device = device,
                                            .report = [this](const std::string& error) {
                                              context_.world.is_main() ? context_.log.error(error) : context_.warn_at_once(error);
                                            }}) {}

// The groups of this rank: the model, the optimizer, the average of weights if one is kept, and "state": the scalars on the
// device with the epoch's running sums.
std::vector<CheckpointGroup> RunCheckpoints::own_groups() {
  CheckpointGroup state = group_of("state", setup_.lr_table->states());
  append(state, setup_.scaler->states());
  append(state, meter_.states());
  state.tensors.push_back({"last_lr", state_.last_lr});
  std::vector<CheckpointGroup> groups{model_group(setup_.table, *setup_.model), group_of("optimizer", setup_.optimizer->states()),
                                      std::move(state)};
  if (setup_.weight_average) groups.push_back(group_of(kAverageGroup, setup_.weight_average->states()));
  if (setup_.spikes) groups.push_back(group_of(kSpikeGroup, setup_.spikes->states()));
  return groups;
}

TensorLayout RunCheckpoints::tensor_layout() const {
  const parallel::ShardGroups& sharding = setup_.layout.sharding;
  const bool is_first_of_cp = sharding.with_cp || setup_.layout.groups.along(parallel::kSampleParts).group_rank() == 0;
  return {.table = setup_.table,
          .groups = setup_.layout.groups,
          .shards = sharding.shards,
          .is_copy = sharding.replicas.group_rank() != 0 || !is_first_of_cp,
          .stages = setup_.layout.groups.along(parallel::Axis::Pp)};
}

CheckpointIndex RunCheckpoints::index() const {
  CheckpointIndex index;
  index.position = state_.position;
  index.seed = config_.loop.seed;
  index.config = config::yaml(config_);
  index.validation_loss = state_.validation_loss;
  index.best_loss = state_.best_value;
  index.best_step = state_.best_step;
  if (config_.loop.best_metric != kValidationLoss) index.best_metric = best_metric_name();
  index.stopping = state_.early_stop;
  index.learning_rate = setup_.lr_table->current().item<double>();
  index.parameters = setup_.table.names();
  const config::ParallelConfig& parallel = config_.parallel;
  index.mesh = {{"dp", setup_.layout.replicas.size()}, {"tp", parallel.tensor_parallel}, {"cp", parallel.context_parallel}};
  if (parallel.spatial.size() > 1) {
    index.mesh.insert({{"d", parallel.spatial.d}, {"h", parallel.spatial.h}, {"w", parallel.spatial.w}});
  }
  if (parallel.pipeline_parallel > 1) index.mesh["pp"] = parallel.pipeline_parallel;
  index.loader = {
      .global_batch_size = config_.loop.global_batch_size,
      .samples_in_epoch = std::min(state_.position.step_in_epoch * config_.loop.global_batch_size, data_.samples_per_epoch())};
  index.data = stored(data_.files());
  index.facts = kernel_choice(config_, context_.registries.models.at(config_.model.model), device_);
  index.facts["device"] = device_.str();
  if (!context_.init_from.empty()) index.facts["init_from"] = context_.init_from;
  return index;
}

// One of the replicas is written. If it were the wrong one, the run would go on from it after the difference was found. So
// weights that differ are neither saved nor carried into another round.
void RunCheckpoints::check_replicas() {
  if (!has_replicas()) return;
  compare_replicas(
      [&] { parallel::check_replicas(setup_.table, setup_.layout.groups, cat("at step ", state_.position.iteration)); });
}

void RunCheckpoints::compare_replicas(const std::function<void()>& compare) const {
  try {
    compare();
  } catch (const parallel::ReplicasDiffer&) {
    state_.is_whole = false;
    throw;
  }
}

// The same with copies, while training goes on. An error that ends the run in the next step loses that checkpoint. So it is
// used neither for weights that take a few milliseconds, nor on a GPU, where a hash takes less time than a copy. Pieces and
// values outside of memory are compared where they are.
std::optional<ReplicaVote> RunCheckpoints::vote_beside() {
  const bool has_copies = config_.loop.checkpoint_async && config_.backend.memory_limit_gib == 0;
  if (!has_replicas() || !has_copies || !device_.is_cpu() || setup_.is_sharded() || setup_.pipeline) return {};
  ReplicaVote vote;
  size_t bytes = 0;
  const std::vector<size_t> numbers = parallel::rows_with_replicas(setup_.table, setup_.layout.groups);
  for (const size_t number : numbers) {
    const parallel::ParamRow& row = setup_.table.rows()[number];
    if (row.read || row.is_released) return {};
    vote.values.push_back({.name = row.name, .value = row.local});
    bytes += row.local.nbytes();
  }
  if (bytes < kLeastVotedBytes) return {};
  vote.compare = [this, numbers, step = state_.position.iteration](const std::vector<int64_t>& hashes) {
    parallel::ReplicaHashes own(setup_.table.rows().size(), 0);
    for (size_t i = 0; i < numbers.size(); ++i) own[numbers[i]] = hashes[i];
    compare_replicas([&] { parallel::check_replicas(setup_.table, setup_.layout.groups, cat("at step ", step), own); });
  };
  return vote;
}

std::vector<CheckpointGroup> RunCheckpoints::groups_to_save() {
  std::vector<CheckpointGroup> groups = own_groups();
  if (data_.replay() != nullptr) groups.push_back(replay_group(*data_.replay(), setup_.layout.groups, setup_.layout.replicas));
  const bool is_writer = context_.world.is_main() || setup_.pipeline;  // stages agree on names first
  if (is_writer && state_.picture) {
    groups.push_back(
        {.name = "picture", .tensors = {{"target", state_.picture->target}, {"prediction", state_.picture->prediction}}});
  }
  return groups;
}

SaveTask RunCheckpoints::task_for(std::vector<CheckpointPlace*> places, bool is_best) {
  return {.groups = groups_to_save(),
          .index = index(),
          .places = std::move(places),
          .best = is_best ? std::optional(best_record()) : std::nullopt};
}

bool RunCheckpoints::save() {
  settle_best();
  writer_.finish();  // whatever is found now, the checkpoint before was good
  setup_.data_parallel->complete_weights();
  check_replicas();
  std::vector<CheckpointPlace*> places;
  for (CheckpointPlace& place : places_.all()) places.push_back(&place);
  const auto saved = writer_.save_now(task_for(std::move(places), /*is_best=*/false), tensor_layout());
  for (const std::string& error : saved.errors) context_.log.error(error);
  const bool is_elsewhere = saved.place != nullptr && saved.place != &places_.own();
  if (is_elsewhere) {
    context_.log.warning(cat("The run's folder did not take the checkpoint of step ", state_.position.iteration, ": it is in ",
                             saved.place->store.path_of(state_.position.iteration).string()));
  }
  return !is_elsewhere;
}

bool RunCheckpoints::note_best(double value) {
  settle_best();
  const bool is_best = std::isfinite(value) && (!state_.best_value || value < *state_.best_value);
  if (!is_best) return false;
  unsaved_best_ = {.step = state_.position.iteration, .value_before = state_.best_value, .step_before = state_.best_step};
  state_.best_value = value;
  state_.best_step = state_.position.iteration;
  return true;
}

// If a best one that was not saved counted, a worse one would be removed for it, and the next good ones would not be saved.
void RunCheckpoints::settle_best() {
  if (!unsaved_best_) return;
  writer_.finish();
  const bool is_there = told_by_first(context_.world.world_group(), int64_t{writer_.marked_best() == unsaved_best_->step}) != 0;
  if (!is_there) {
    state_.best_value = unsaved_best_->value_before;
    state_.best_step = unsaved_best_->step_before;
  }
  unsaved_best_.reset();
}

bool RunCheckpoints::is_due(const CheckpointPlace& place) const {
  const int64_t step = state_.position.iteration;
  if (!place.is_auto) return place.interval > 0 && step % place.interval == 0;
  return step - place.last_step >= agreed_->steps() || (place.keep_every > 0 && step % place.keep_every == 0);
}

// A best checkpoint also goes into the run's folder.
std::vector<CheckpointPlace*> RunCheckpoints::due_places(bool is_best) {
  std::vector<CheckpointPlace*> due;
  for (CheckpointPlace& place : places_.all()) {
    if (!is_due(place) && !(is_best && &place == places_.all().data())) continue;
    place.last_step = state_.position.iteration;
    due.push_back(&place);
  }
  return due;
}

// A checkpoint that cannot be written in the middle of a run is reported, and the run goes on: the next one may succeed, and
// stopping would lose all work since the last one.
void RunCheckpoints::save_if_due(bool is_best) {
  if (agreed_) agreed_->step_done(state_.position.iteration);
  std::vector<CheckpointPlace*> due = due_places(is_best);
  if (due.empty()) return;
  setup_.data_parallel->complete_weights();
  std::optional<ReplicaVote> vote = vote_beside();
  if (!vote) check_replicas();
  SaveTask task = task_for(std::move(due), is_best);
  task.vote = std::move(vote);
  writer_.save(std::move(task), tensor_layout());
  if (agreed_) agreed_->saved(state_.position.iteration, writer_.held_seconds(), writer_.save_seconds());
}

void RunCheckpoints::choose_interval() {
  for (CheckpointPlace& place : places_.all()) place.last_step = state_.position.iteration;
  constexpr double kHour = 3600;
  agreed_.emplace(
      context_.world.world_group(),
      AgreedInterval::Options{.mtbf_s = config_.loop.mtbf * kHour / static_cast<double>(context_.world.rank_info().num_nodes),
                              .file = times_file_,
                              .resumed = state_.resumed,
                              .say = [this](const std::string& line) { context_.log.info(line); }});
}

std::string RunCheckpoints::best_metric_name() const { return best_metric(config_, data_.valid().spec()).name; }

BestRecord RunCheckpoints::best_record() const {
  BestRecord record{.step = state_.position.iteration, .validation_loss = *state_.validation_loss};
  if (const std::string metric = best_metric_name(); metric != kValidationLoss) {
    record.metric = metric;
    record.value = *state_.best_value;
  }
  return record;
}

// A model with buffers is not carried: they change before a step is whole.
bool RunCheckpoints::carries() const { return is_replicated(config_) && setup_.model->buffers().empty(); }

std::unique_ptr<CarriedState> RunCheckpoints::carry() {
  if (!carries()) return {};
  return carry_state(own_groups(), index());
}

std::vector<std::string> RunCheckpoints::summary() const {
  std::vector<std::string> lines;
  if (const std::string written = writer_.summary(); !written.empty()) lines.push_back(written);
  if (verifier_) lines.push_back(cat("Checkpoints read again and found whole: ", verifier_->num_verified()));
  return lines;
}

std::string RunCheckpoints::newest() const {
  if (!setup_.is_sharded()) writer_.wait_for_own();
  return places_.newest();
}

}  // namespace welkin::train
