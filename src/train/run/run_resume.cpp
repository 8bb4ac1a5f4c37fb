// SPDX-License-Identifier: Apache-2.0
// Continues a run: from a checkpoint, from the memory of the round before, or from another program's weights.
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "config/resolve/same_run.h"
#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "data/storage/fingerprint.h"
#include "parallel/comm/collectives.h"
#include "parallel/shard/model_parallel_gradients.h"
#include "train/checkpoint/checkpoint_store.h"
#include "train/checkpoint/shared_checkpoint.h"
#include "train/device/kernel_choice.h"
#include "train/interchange/initial_weights.h"
#include "train/monitor/validation_metric.h"
#include "train/replay/replay_checkpoint.h"
#include "train/run/run_checkpoints.h"
#include "train/run/run_rules.h"
#include "train/step/model_setup.h"

namespace welkin::train {
namespace {

// Order and content of the samples belong to the run: with other files it would be another run.
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

// The folder of a run of this preset and number on another number of ranks, if it has checkpoints; empty: there is none.
std::string folder_of_other_ranks(const std::filesystem::path& run_folder) {
  const std::filesystem::path of_ranks = run_folder.parent_path();
  for (const std::filesystem::path& other : entries_of(of_ranks.parent_path())) {
    const std::filesystem::path found = other / run_folder.filename();
    const bool is_other = other.filename() != of_ranks.filename();
    if (is_other && !CheckpointStore(found / "checkpoints").steps().empty()) return found.string();
  }
  return {};
}

CheckpointGroup own_group_of(std::vector<CheckpointGroup> groups, const std::string& name) {
  return std::move(*std::ranges::find(groups, name, &CheckpointGroup::name));
}

}  // namespace

// An average that is kept only from now on begins with the weights; a spike window begins empty.
bool RunCheckpoints::lacks(const Checkpoint& checkpoint, const CheckpointGroup& group) const {
  if (group.name == kSpikeGroup) return !checkpoint.contains(stored_name(group.name, "spike_count"));
  return group.name == kAverageGroup && !checkpoint.contains(stored_name(group.name, "updates"));
}

// Loads the best value so far, unless another metric decides now: then the best is sought anew.
void RunCheckpoints::load_judgement(const CheckpointIndex& index) {
  state_.early_stop = index.stopping;
  const std::string before = index.best_metric.empty() ? kValidationLoss : index.best_metric;
  const std::string now = best_metric_name();
  if (before == now) {
    state_.best_value = index.best_loss;
    state_.best_step = index.best_step;
  } else if (index.best_loss) {
    context_.log.info(cat("The best checkpoint was chosen by ", before, " and is now chosen by ", now, ": it is sought anew"));
  }
}

// Under other rules a position means other samples.
void RunCheckpoints::check_rules(const Checkpoint& checkpoint) const {
  const std::string name = cat("config of ", checkpoint.folder().string());
  const std::string change = config::pinned_difference(config::saved_values(checkpoint.index().config, name), config_);
  if (change.empty()) return;
  throw CheckpointError("checkpoint", cat("it was saved under other rules: path=", checkpoint.folder().string(), ", ", change),
                        "Resume with the rules of the checkpoint, or start a new run with another --run_num");
}

// Loads another program's checkpoint: weights, perhaps an optimizer's state, and a number of steps, which determines the rest.
void RunCheckpoints::load_imported(const Checkpoint& checkpoint) {
  read_parts(checkpoint, model_group(setup_.table, *setup_.model), tensor_layout());
  const auto is_of_optimizer = [](const auto& row) { return row.first.starts_with("optimizer."); };
  if (std::ranges::any_of(checkpoint.index().tensors, is_of_optimizer)) {
    read_parts(checkpoint, own_group_of(own_groups(), "optimizer"), tensor_layout());
  } else {
    context_.log.info("The imported checkpoint has no optimizer state: the moments start at zero");
  }
  if (setup_.weight_average) setup_.weight_average->restart();
  state_.position.iteration = checkpoint.index().position.iteration;
  state_.position.epoch = state_.position.iteration / state_.length.steps_per_epoch;
  state_.position.step_in_epoch = state_.position.iteration % state_.length.steps_per_epoch;
  const int64_t lr_step = std::min(state_.position.iteration, state_.length.total_steps);
  for (const NamedState& state : setup_.lr_table->states()) state.value.fill_(lr_step);
  state_.last_lr = setup_.lr_table->current();
  setup_.counter.fill_(state_.position.iteration);
  data_.loader().resume({.epoch = state_.position.epoch, .step = state_.position.step_in_epoch});
}

// Loads the weights of a file of any format for a run that begins; each rank reads its parts.
void RunCheckpoints::load_initial_weights() {
  if (context_.init_from.empty()) return;
  const interchange::State state =
      interchange::open_state(context_.init_from, {.open_folder = [this](const std::filesystem::path& folder) {
                                return open_shared_checkpoint(context_.world.world_group(), folder);
                              }});
  const CheckpointGroup own = with_places(model_group(setup_.table, *setup_.model), tensor_layout());
  for (const std::string& line : interchange::take_weights(state, context_.initial_weights, own)) context_.log.info(line);
  if (setup_.weight_average) setup_.weight_average->restart();
}

// Two optimizers may have states with the same meaning, which then have the same names.
void RunCheckpoints::load_optimizer(const Checkpoint& checkpoint, const CheckpointGroup& group) {
  const config::ResumedOptimizer how = config_.loop.resume_optimizer;
  if (how == config::ResumedOptimizer::Same) {
    read_parts(checkpoint, group, tensor_layout());
    return check_same_optimizer(checkpoint, config_, group);
  }
  CheckpointGroup kept{.name = group.name, .tensors = {}};
  if (how == config::ResumedOptimizer::Fitting) kept = fitting_tensors(checkpoint, group, tensor_layout());
  read_tensors(checkpoint, kept, tensor_layout());
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min<size_t>(3, kept.tensors.size()); ++i) names.push_back(kept.tensors[i].name);
  context_.log.info(cat("Optimizer states: ", kept.tensors.size(), " of ", group.tensors.size(), " are those of the checkpoint",
                        names.empty() ? "" : cat(" (", join(names, " "), kept.tensors.size() > 3 ? " ..." : "", ")"),
                        ", the others begin anew"));
}

void RunCheckpoints::load(const Checkpoint& checkpoint) {
  if (!checkpoint.index().origin.empty()) return load_imported(checkpoint);
  check_rules(checkpoint);
  check_same_data(checkpoint.index(), data_.files(), config_.data);
  const std::string note =
      check_kernels(checkpoint.index().facts, kernel_choice(config_, context_.registries.models.at(config_.model.model), device_),
                    config_.loop.deterministic);
  if (!note.empty()) context_.log.info(note);
  for (const CheckpointGroup& group : own_groups()) {
    if (!lacks(checkpoint, group)) {
      group.name == "optimizer" ? load_optimizer(checkpoint, group) : read_parts(checkpoint, group, tensor_layout());
      continue;
    }
    if (group.name == kSpikeGroup) continue;
    setup_.weight_average->restart();
    context_.log.info("The checkpoint has no moving average of weights: it begins with the weights of the checkpoint");
  }
  go_on_from(checkpoint.index());
  if (data_.replay() != nullptr) context_.log.info(load_replay(checkpoint, *data_.replay()));
  if (checkpoint.contains("picture.target")) {
    state_.picture =
        ForecastPair{.target = checkpoint.read("picture.target"), .prediction = checkpoint.read("picture.prediction")};
  }
}

// The samples of an epoch have one order for batches of every size.
int64_t RunCheckpoints::step_in_epoch(const CheckpointIndex& index) const {
  const int64_t before = index.loader.global_batch_size, now = config_.loop.global_batch_size;
  const int64_t samples = index.loader.samples_in_epoch;
  if (before == now || before == 0) return index.position.step_in_epoch;
  if (samples >= state_.length.samples) return state_.length.steps_per_epoch;
  if (samples % now == 0) return std::min(samples / now, state_.length.steps_per_epoch);
  throw ConfigError(
      "run",
      cat("no batch begins where the checkpoint stands in its epoch: samples done=", samples, ", global_batch_size=", now,
          ", before=", before),
      "Go on with the batch size before, or with one that divides these samples; at the end of an epoch any will do");
}

void RunCheckpoints::go_on_from(const CheckpointIndex& index) {
  state_.position = index.position;
  state_.position.step_in_epoch = step_in_epoch(index);
  state_.validation_loss = index.validation_loss;
  load_judgement(index);
  setup_.counter.fill_(state_.position.iteration);
  const bool at_end = state_.position.step_in_epoch == state_.length.steps_per_epoch;
  data_.loader().resume({.epoch = state_.position.epoch + (at_end ? 1 : 0), .step = at_end ? 0 : state_.position.step_in_epoch});
}

// Finds the checkpoint to go on from; nothing if the run begins.
std::optional<Checkpoint> RunCheckpoints::find() {
  const auto say = [this](const std::string& line) { context_.log.info(line); };
  if (!config_.loop.resume) {
    places_.put_aside(say);
    return {};
  }
  size_t num_found = 0;
  auto checkpoint = places_.newest_good([this](const std::string& damage) { context_.log.warning(damage); }, say, num_found);
  if (!checkpoint && context_.world.is_main()) check_none(num_found);
  return checkpoint;
}

void RunCheckpoints::check_none(size_t damaged) const {
  if (damaged > 0) {
    throw CheckpointError(
        "checkpoint",
        cat("no checkpoint of the run is whole: path=", places_.own().store.folder().string(), ", damaged=", damaged),
        "Restore one from a copy, or start over without --resume, which moves them aside");
  }
  context_.log.info("There is no checkpoint to resume from: the run starts from the beginning");
  const std::filesystem::path run_folder = places_.own().store.folder().parent_path();
  if (const std::string other = folder_of_other_ranks(run_folder); !other.empty()) {
    context_.log.warning(cat("Another number of ranks has another folder, and ", other,
                             " has checkpoints: to continue these, end this run and move ", other, " to ", run_folder.string(),
                             ". With --set folder_rule=mp a run has one folder for any number"));
  }
}

// Takes the state from the memory of a rank of the round before. Every rank calls it.
bool RunCheckpoints::take_carried() {
  if (context_.elastic == nullptr || !is_replicated(config_)) return false;
  const auto shared = share_state(context_.world, context_.elastic->carried.get(), own_groups());
  if (!shared) return false;
  go_on_from(shared->index);
  resumed_from_ = cat("the memory of rank ", shared->rank);
  return true;
}

void RunCheckpoints::start_or_resume() {
  const bool is_carried = take_carried();
  places_.connect(setup_.is_sharded());
  places_.take(is_carried || config_.loop.resume);
  const auto checkpoint = is_carried ? std::nullopt : find();
  if (checkpoint) {
    load(*checkpoint);
  } else if (!is_carried) {
    load_initial_weights();
  }
  setup_.data_parallel->after_update();  // gathered weights follow the loaded ones
  setup_.data_parallel->complete_weights();
  const bool chooses = std::ranges::any_of(places_.all(), &CheckpointPlace::is_auto);
  const bool saves_on_the_way =
      chooses || std::ranges::any_of(places_.all(), [](const auto& place) { return place.interval > 0; });
  if (saves_on_the_way && !state_.all_steps_done()) writer_.prepare(own_groups(), tensor_layout());
  state_.resumed = is_carried || checkpoint.has_value();
  if (chooses) choose_interval();
  if (checkpoint) resumed_from_ = checkpoint->folder().string();
  parallel::barrier(context_.world.world_group());
  if (context_.world.size() > 1) parallel::check_replicas(setup_.table, setup_.layout.groups, "at the start");
}

// The best so far is the best that is there: the process before may have ended between saving it and naming it.
void RunCheckpoints::find_best() {
  const at::Tensor told = at::zeros({3}, at::kDouble);
  if (context_.world.is_main()) {
    const std::string metric = best_metric_name() == kValidationLoss ? std::string() : best_metric_name();
    const auto best = places_.all().front().store.repair_best(metric, state_.best_step, state_.position.iteration);
    if (best)
      told.copy_(at::tensor({1.0, metric.empty() ? best->validation_loss : best->value, static_cast<double>(best->step)}));
  }
  parallel::broadcast(context_.world.world_group(), told, 0);
  const auto* const values = told.const_data_ptr<double>();
  state_.best_value.reset();
  state_.best_step.reset();
  if (values[0] == 0) return;
  state_.best_value = values[1];
  state_.best_step = static_cast<int64_t>(values[2]);
}

void RunCheckpoints::claim() {
  places_.continue_from(state_.position.iteration);
  if (state_.resumed) find_best();
  if (config_.loop.verify_interval == 0 || !context_.world.is_main()) return;
  const auto folders = [this] {
    std::vector<BackgroundVerifier::Kept> all;
    for (const CheckpointPlace& place : places_.all()) {
      for (const int64_t step : place.store.steps()) all.push_back({place.store.path_of(step), place.on_nodes});
    }
    return all;
  };
  verifier_ = std::make_unique<BackgroundVerifier>(std::chrono::seconds(config_.loop.verify_interval), folders,
                                                   [this](const std::string& damage) { context_.log.error(damage); });
}

}  // namespace welkin::train
