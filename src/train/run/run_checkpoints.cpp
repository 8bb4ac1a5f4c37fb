// SPDX-License-Identifier: Apache-2.0
#include "train/run/run_checkpoints.h"

#include <algorithm>
#include <chrono>
#include <functional>

#include "config/print/print.h"
#include "config/resolve/resolve.h"
#include "config/resolve/same_run.h"
#include "core/error.h"
#include "core/text.h"
#include "data/storage/fingerprint.h"
#include "parallel/comm/collectives.h"
#include "parallel/shard/model_parallel_gradients.h"
#include "train/checkpoint/shared_checkpoint.h"
#include "train/device/kernel_choice.h"
#include "train/interchange/initial_weights.h"
#include "train/monitor/validation_metric.h"
#include "train/replay/replay_checkpoint.h"
#include "train/run/run_rules.h"
#include "train/step/model_setup.h"

namespace welkin::train {
namespace {

constexpr const char* kSpikeGroup = "spikes";

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

// Of this rank: the model, the optimizer, the average of weights where one is kept, and as "state" the scalars on the device with
// the epoch's running sums.
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

// A run that keeps an average from now on begins it with the weights, and one that looks for spikes knows no steps yet.
bool RunCheckpoints::lacks(const Checkpoint& checkpoint, const CheckpointGroup& group) const {
  if (group.name == kSpikeGroup) return !checkpoint.contains(stored_name(group.name, "spike_count"));
  return group.name == kAverageGroup && !checkpoint.contains(stored_name(group.name, "updates"));
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

std::vector<CheckpointGroup> RunCheckpoints::groups_to_save() {
  setup_.data_parallel->complete_weights();
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

void RunCheckpoints::save() { writer_.save_now(task_for({places_.all().data()}, /*is_best=*/false), tensor_layout()); }

bool RunCheckpoints::is_due(const CheckpointPlace& place) const {
  const int64_t step = state_.position.iteration;
  if (!place.is_auto) return place.interval > 0 && step % place.interval == 0;
  return step - place.last_step >= agreed_->steps() || (place.keep_every > 0 && step % place.keep_every == 0);
}

// The best one goes into the run's folder.
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
// stopping would lose what was computed since the last.
void RunCheckpoints::save_if_due(bool is_best) {
  if (agreed_) agreed_->step_done(state_.position.iteration);
  std::vector<CheckpointPlace*> due = due_places(is_best);
  if (due.empty()) return;
  writer_.save(task_for(std::move(due), is_best), tensor_layout());
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

// The best value so far, unless the run is judged by another metric now: then it is sought anew.
void RunCheckpoints::load_judgement(const CheckpointIndex& index) {
  state_.early_stop = index.stopping;
  const std::string before = index.best_metric.empty() ? kValidationLoss : index.best_metric;
  const std::string now = best_metric_name();
  if (before == now) {
    state_.best_value = index.best_loss;
  } else if (index.best_loss) {
    context_.log.info(cat("The best checkpoint was chosen by ", before, " and is now chosen by ", now, ": it is sought anew"));
  }
}

// A position means other samples under other rules.
void RunCheckpoints::check_rules(const Checkpoint& checkpoint) const {
  const std::string name = cat("config of ", checkpoint.folder().string());
  const std::string change = config::pinned_difference(config::saved_values(checkpoint.index().config, name), config_);
  if (change.empty()) return;
  throw CheckpointError("checkpoint", cat("it was saved under other rules: path=", checkpoint.folder().string(), ", ", change),
                        "Resume with the rules of the checkpoint, or start a new run with another --run_num");
}

// From another program: weights, perhaps an optimizer's state, and a number of steps, from which the rest follows.
void RunCheckpoints::load_imported(const Checkpoint& checkpoint) {
  read_parts(checkpoint, model_group(setup_.table, *setup_.model), tensor_layout());
  const auto is_of_optimizer = [](const auto& row) { return row.first.starts_with("optimizer."); };
  if (std::ranges::any_of(checkpoint.index().tensors, is_of_optimizer)) {
    read_parts(checkpoint, group_of("optimizer", setup_.optimizer->states()), tensor_layout());
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

// The weights of a file of any format, for a run that begins: of each what this rank has.
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

// Another optimizer than the one that saved may have states of the same meaning, and of the same names then.
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

void RunCheckpoints::go_on_from(const CheckpointIndex& index) {
  state_.position = index.position;
  state_.validation_loss = index.validation_loss;
  load_judgement(index);
  setup_.counter.fill_(state_.position.iteration);
  const bool at_end = state_.position.step_in_epoch == state_.length.steps_per_epoch;
  data_.loader().resume({.epoch = state_.position.epoch + (at_end ? 1 : 0), .step = at_end ? 0 : state_.position.step_in_epoch});
}

// What to go on from; nothing where the run begins.
std::optional<Checkpoint> RunCheckpoints::find() {
  places_.connect(setup_.is_sharded());
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
}

std::unique_ptr<CarriedState> RunCheckpoints::carry() {
  if (!is_replicated(config_) || !setup_.model->buffers().empty()) return {};  // buffers change before a step is whole
  return carry_state(own_groups(), index());
}

// From the memory of a rank of the round before. Every rank calls it.
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
  const auto checkpoint = is_carried ? std::nullopt : find();
  if (checkpoint) {
    load(*checkpoint);
  } else if (!is_carried) {
    load_initial_weights();
  }
  setup_.data_parallel->after_update();  // weights that are gathered follow what was loaded
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

void RunCheckpoints::claim() {
  places_.continue_from(state_.position.iteration);
  if (config_.loop.verify_interval == 0 || !context_.world.is_main()) return;
  const auto folders = [this] {
    std::vector<std::filesystem::path> all;
    for (const CheckpointPlace& place : places_.all()) {
      for (const int64_t step : place.store.steps()) all.push_back(place.store.path_of(step));
    }
    return all;
  };
  verifier_ = std::make_unique<BackgroundVerifier>(std::chrono::seconds(config_.loop.verify_interval), folders,
                                                   [this](const std::string& damage) { context_.log.error(damage); });
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
