// SPDX-License-Identifier: Apache-2.0
// What a checkpoint of a run holds, when it is saved, and how a run continues from it.
#include <algorithm>
#include <csignal>

#include "config/print/print.h"
#include "config/resolve/resolve.h"
#include "config/resolve/same_run.h"
#include "core/error.h"
#include "core/text.h"
#include "data/storage/fingerprint.h"
#include "train/checkpoint/whole_tensors.h"
#include "train/device/kernel_choice.h"
#include "train/interchange/import_state.h"
#include "train/run/trainer.h"
#include "train/step/model_setup.h"

namespace welkin::train {
namespace {

void append(CheckpointGroup& group, const std::vector<NamedState>& states) {
  for (const NamedState& state : states) group.tensors.push_back({state.name, state.value});
}

std::map<std::string, StoredFile> stored(const std::vector<data::FileFingerprint>& prints) {
  std::map<std::string, StoredFile> files;
  for (const data::FileFingerprint& print : prints) files[print.name] = {print.bytes, print.hash};
  return files;
}

// Order and content of the samples belong to the run: other files would be another run.
void check_same_data(const CheckpointIndex& index, const std::vector<data::FileFingerprint>& now,
                     const config::DataConfig& config) {
  if (config.allow_changed_data || index.data.empty()) return;
  std::vector<data::FileFingerprint> before;
  for (const auto& [name, file] : index.data) before.push_back({name, file.bytes, file.xxh3});
  const std::string changes = data::fingerprint_changes(before, now);
  if (changes.empty()) return;
  throw DataError("checkpoint", cat("the training data have changed since the checkpoint: ", changes),
                  "Restore the files, start over without --resume, or go on with --allow_changed_data");
}

}  // namespace

// Scalars on the device, and the epoch's running sums.
CheckpointGroup Trainer::state_group() {
  CheckpointGroup state{.name = "state", .tensors = {}};
  append(state, setup_->rates->states());
  append(state, setup_->scaler->states());
  append(state, meter_->states());
  state.tensors.push_back({"last_rate", last_rate_});
  return state;
}

std::vector<CheckpointGroup> Trainer::checkpoint_groups() {
  CheckpointGroup optimizer{.name = "optimizer", .tensors = {}};
  append(optimizer, setup_->optimizer->states());
  return {model_group(setup_->table, *setup_->model), std::move(optimizer), state_group()};
}

// Every rank takes part where tensors are split.
std::vector<CheckpointGroup> Trainer::whole_groups() {
  std::vector<CheckpointGroup> groups;
  for (const CheckpointGroup& group : checkpoint_groups()) groups.push_back(gather_whole(group, setup_->table, layout_.groups));
  return groups;
}

CheckpointIndex Trainer::checkpoint_index() const {
  CheckpointIndex index;
  index.position = position_;
  index.seed = config_.loop.seed;
  index.config = config::yaml(config_);
  index.validation_loss = validation_loss_;
  index.best_loss = best_loss_;
  index.learning_rate = setup_->rates->current().item<double>();
  for (const parallel::ParamRow& row : setup_->table.rows()) index.parameters.push_back(row.name);
  const config::ParallelConfig& parallel = config_.parallel;
  index.mesh = {{"dp", layout_.replicas.size()}, {"tp", parallel.tensor_parallel}, {"cp", parallel.context_parallel}};
  index.loader = {.global_batch_size = config_.loop.global_batch_size,
                  .samples_in_epoch = std::min(position_.step_in_epoch * config_.loop.global_batch_size, samples_per_epoch_)};
  index.data = stored(data_files_);
  index.facts = kernel_choice(config_, device_);
  index.facts["device"] = device_.str();
  if (!context_.init_from.empty()) index.facts["init_from"] = context_.init_from;
  return index;
}

// Replicas are equal: the first rank's copy is everybody's.
void Trainer::save() { store_whole(whole_groups()); }

void Trainer::store_whole(std::vector<CheckpointGroup> groups) {
  if (!context_.world.leads()) return;
  if (picture_)
    groups.push_back({.name = "picture", .tensors = {{"target", picture_->target}, {"prediction", picture_->prediction}}});
  store_.save(checkpoint_index(), groups);
}

// A checkpoint that cannot be written in the middle of a run is reported, and the run goes on: the next one may succeed, and
// stopping would lose what was computed since the last.
void Trainer::save_if_due(bool is_best) {
  const int64_t interval = config_.loop.checkpoint_interval;
  if (!is_best && (interval == 0 || position_.iteration % interval != 0)) return;
  auto groups = whole_groups();  // not within the try: a rank that is missing ends the run
  if (!context_.world.leads()) return;
  try {
    store_whole(std::move(groups));
    if (is_best) store_.mark_best({.step = position_.iteration, .validation_loss = *best_loss_});
    store_.prune(config_.loop.keep_checkpoints);
  } catch (const Error& error) {
    context_.log.error(error.what());
  }
}

// A position means other samples under other rules.
void Trainer::check_rules(const Checkpoint& checkpoint) const {
  const std::string name = cat("config of ", checkpoint.folder().string());
  const std::string change = config::pinned_difference(config::saved_values(checkpoint.index().config, name), config_);
  if (change.empty()) return;
  throw CheckpointError("checkpoint", cat("it was saved under other rules: path=", checkpoint.folder().string(), ", ", change),
                        "Resume with the rules of the checkpoint, or start a new run with another --run_num");
}

// From another program: there are weights, perhaps an optimizer's state, and a number of steps. The rest follows from that
// number.
void Trainer::load_imported(const Checkpoint& checkpoint) {
  read_parts(checkpoint, model_group(setup_->table, *setup_->model), setup_->table, layout_.groups);
  CheckpointGroup optimizer{.name = "optimizer", .tensors = {}};
  append(optimizer, setup_->optimizer->states());
  const auto& stored = checkpoint.index().tensors;
  if (std::ranges::any_of(stored, [](const auto& row) { return row.first.starts_with("optimizer."); })) {
    read_parts(checkpoint, optimizer, setup_->table, layout_.groups);
  } else {
    context_.log.info("The imported checkpoint has no optimizer state: its averages start at zero");
  }
  position_.iteration = checkpoint.index().position.iteration;
  position_.epoch = position_.iteration / length_.steps_per_epoch;
  position_.step_in_epoch = position_.iteration % length_.steps_per_epoch;
  for (const NamedState& state : setup_->rates->states()) state.value.fill_(std::min(position_.iteration, length_.total_steps));
  last_rate_ = setup_->rates->current();
  setup_->counter.fill_(position_.iteration);
  pipeline_->resume({.epoch = position_.epoch, .step = position_.step_in_epoch});
}

// The weights of a file of any format, for a run that begins.
void Trainer::load_initial_weights() {
  const interchange::State state = interchange::open_state(context_.init_from);
  interchange::load_weights(state, model_group(setup_->table, *setup_->model));
  context_.log.info(cat("Weights are those of ", context_.init_from, " (", state.format, ")"));
}

void Trainer::load(const Checkpoint& checkpoint) {
  if (!checkpoint.index().origin.empty()) return load_imported(checkpoint);
  check_rules(checkpoint);
  check_same_data(checkpoint.index(), data_files_, config_.data);
  const std::string note = check_kernels(checkpoint.index().facts, kernel_choice(config_, device_), config_.loop.deterministic);
  if (!note.empty()) context_.log.info(note);
  for (const CheckpointGroup& group : checkpoint_groups()) read_parts(checkpoint, group, setup_->table, layout_.groups);
  position_ = checkpoint.index().position;
  validation_loss_ = checkpoint.index().validation_loss;
  best_loss_ = checkpoint.index().best_loss;
  if (checkpoint.contains("picture.target")) {
    picture_ = FieldPair{.target = checkpoint.read("picture.target"), .prediction = checkpoint.read("picture.prediction")};
  }
  setup_->counter.fill_(position_.iteration);
  const bool at_end = position_.step_in_epoch == length_.steps_per_epoch;
  pipeline_->resume({.epoch = position_.epoch + (at_end ? 1 : 0), .step = at_end ? 0 : position_.step_in_epoch});
}

std::string Trainer::last_checkpoint() const {
  const std::vector<int64_t> steps = store_.steps();
  return steps.empty() ? std::string() : store_.path_of(steps.front()).string();
}

RunOutcome Trainer::stop_early() {
  const char* signal = context_.interrupt.signal_number() == SIGINT ? "SIGINT" : "SIGTERM";
  try {
    save();
    journal_->flush();
  } catch (const Error& error) {
    context_.log.error(error.what());
    throw Interrupted("train", cat("interrupted, and nothing could be saved: signal=", signal, ", step=", position_.iteration),
                      "The reason stands above; earlier checkpoints are untouched, --resume continues from the newest");
  }
  if (context_.world.leads()) store_.prune(config_.loop.keep_checkpoints);
  context_.log.info(cat("Interrupted by ", signal, " at step ", position_.iteration, ": saved ", last_checkpoint()));
  const std::string& command = context_.resume_command;
  context_.log.info(command.empty() ? "Start it as before with --resume to continue" : cat("Continue with: ", command));
  return {
      .completed = false, .iterations = position_.iteration, .folder = folder_.path(), .has_lost_records = profile_->has_lost()};
}

}  // namespace welkin::train
