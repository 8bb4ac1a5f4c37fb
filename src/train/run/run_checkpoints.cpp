// SPDX-License-Identifier: Apache-2.0
#include "train/run/run_checkpoints.h"

#include <algorithm>

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
#include "train/step/model_setup.h"

namespace welkin::train {
namespace {

void append(CheckpointGroup& group, const std::vector<NamedState>& states) {
  for (const NamedState& state : states) {
    group.tensors.push_back(
        {.name = state.name, .value = state.value, .run = state.run, .fetch = state.read, .store = state.write});
  }
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
      store_(std::move(folder)),
      setup_(setup),
      meter_(meter),
      data_(data),
      state_(state),
      device_(device) {}

// Of this rank: the model, the optimizer, the average of weights where one is kept, and as "state" the scalars on the device with
// the epoch's running sums.
std::vector<CheckpointGroup> RunCheckpoints::own_groups() {
  CheckpointGroup optimizer{.name = "optimizer", .tensors = {}}, state{.name = "state", .tensors = {}};
  append(optimizer, setup_.optimizer->states());
  append(state, setup_.lr_table->states());
  append(state, setup_.scaler->states());
  append(state, meter_.states());
  state.tensors.push_back({"last_lr", state_.last_lr});
  std::vector<CheckpointGroup> groups{model_group(setup_.table, *setup_.model), std::move(optimizer), std::move(state)};
  if (setup_.weight_average) {
    groups.push_back({.name = kAverageGroup, .tensors = {}});
    append(groups.back(), setup_.weight_average->states());
  }
  return groups;
}

// A run that keeps an average from now on begins it with the weights.
bool RunCheckpoints::lacks(const Checkpoint& checkpoint, const CheckpointGroup& group) const {
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

// Pieces of one training state lie on many ranks: each writes its own.
void RunCheckpoints::save_pieces(const std::vector<CheckpointGroup>& groups) {
  const auto begin = [this]() -> std::optional<CheckpointIndex> {
    CheckpointIndex wanted = index();
    if (!store_.make_room(wanted)) return {};
    return wanted;
  };
  write_shared_checkpoint(context_.world.world_group(), store_.path_of(state_.position.iteration),
                          own_tensors(groups, tensor_layout()), begin);
}

// Replicas are equal: the first rank's copy is everybody's.
void RunCheckpoints::save() {
  setup_.data_parallel->complete_weights();
  std::vector<CheckpointGroup> groups = own_groups();
  const bool is_writer = context_.world.is_main() || setup_.pipeline;  // stages agree on names first
  if (is_writer && state_.picture) {
    groups.push_back(
        {.name = "picture", .tensors = {{"target", state_.picture->target}, {"prediction", state_.picture->prediction}}});
  }
  if (setup_.is_sharded()) return save_pieces(groups);
  WholeGroups whole(std::move(groups), tensor_layout());
  if (!context_.world.is_main()) return whole.join_others();
  try {
    store_.save(index(), whole.groups());
  } catch (const CommError&) {
    throw;  // nobody is there to join
  } catch (const Error&) {
    whole.join_others();
    throw;
  }
  whole.join_others();
}

// A checkpoint that cannot be written in the middle of a run is reported, and the run goes on: the next one may succeed, and
// stopping would lose what was computed since the last.
void RunCheckpoints::save_if_due(bool is_best) {
  const int64_t interval = config_.loop.checkpoint_interval;
  if (!is_best && (interval == 0 || state_.position.iteration % interval != 0)) return;
  try {
    save();
    if (!context_.world.is_main()) return;
    if (is_best) store_.mark_best(best_record());
    store_.prune(config_.loop.keep_checkpoints);
  } catch (const CommError&) {
    throw;  // a rank that is missing ends the run
  } catch (const Error& error) {
    context_.log.error(error.what());
  }
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

// From another program: there are weights, perhaps an optimizer's state, and a number of steps. The rest follows from that
// number.
void RunCheckpoints::load_imported(const Checkpoint& checkpoint) {
  read_parts(checkpoint, model_group(setup_.table, *setup_.model), tensor_layout());
  CheckpointGroup optimizer{.name = "optimizer", .tensors = {}};
  append(optimizer, setup_.optimizer->states());
  const auto& stored = checkpoint.index().tensors;
  if (std::ranges::any_of(stored, [](const auto& row) { return row.first.starts_with("optimizer."); })) {
    read_parts(checkpoint, optimizer, tensor_layout());
  } else {
    context_.log.info("The imported checkpoint has no optimizer state: the moments start at zero");
  }
  if (setup_.weight_average) setup_.weight_average->restart();
  state_.position.iteration = checkpoint.index().position.iteration;
  state_.position.epoch = state_.position.iteration / state_.length.steps_per_epoch;
  state_.position.step_in_epoch = state_.position.iteration % state_.length.steps_per_epoch;
  for (const NamedState& state : setup_.lr_table->states())
    state.value.fill_(std::min(state_.position.iteration, state_.length.total_steps));
  state_.last_lr = setup_.lr_table->current();
  setup_.counter.fill_(state_.position.iteration);
  data_.loader().resume({.epoch = state_.position.epoch, .step = state_.position.step_in_epoch});
}

// The weights of a file of any format, for a run that begins.
void RunCheckpoints::load_initial_weights() {
  if (context_.init_from.empty()) return;
  const interchange::State state = interchange::open_state(context_.init_from);
  const CheckpointGroup own = model_group(setup_.table, *setup_.model);
  const CheckpointGroup whole = gather_whole(own, tensor_layout());
  for (const std::string& line : interchange::take_weights(state, context_.initial_weights, whole)) context_.log.info(line);
  cut_parts(whole, own, tensor_layout());
  if (setup_.weight_average) setup_.weight_average->restart();
}

// Another optimizer than the one that saved may have states of the same meaning, and of the same names then.
void RunCheckpoints::load_optimizer(const Checkpoint& checkpoint, const CheckpointGroup& group) {
  const config::ResumedOptimizer how = config_.loop.resume_optimizer;
  if (how == config::ResumedOptimizer::Same) return read_parts(checkpoint, group, tensor_layout());
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
    setup_.weight_average->restart();
    context_.log.info("The checkpoint has no moving average of weights: it begins with the weights of the checkpoint");
  }
  state_.position = checkpoint.index().position;
  state_.validation_loss = checkpoint.index().validation_loss;
  load_judgement(checkpoint.index());
  if (checkpoint.contains("picture.target")) {
    state_.picture =
        ForecastPair{.target = checkpoint.read("picture.target"), .prediction = checkpoint.read("picture.prediction")};
  }
  setup_.counter.fill_(state_.position.iteration);
  const bool at_end = state_.position.step_in_epoch == state_.length.steps_per_epoch;
  data_.loader().resume({.epoch = state_.position.epoch + (at_end ? 1 : 0), .step = at_end ? 0 : state_.position.step_in_epoch});
}

// What to go on from; nothing where the run begins. The leader's folder counts: files may change while others look.
std::optional<Checkpoint> RunCheckpoints::find() {
  const parallel::Group& world = context_.world.world_group();
  if (!config_.loop.resume) {
    if (context_.world.is_main()) put_aside();
    return {};
  }
  const std::vector<int64_t> steps = steps_of_first(world, store_.steps());
  const auto open = [&world](const std::filesystem::path& folder) { return open_shared_checkpoint(world, folder); };
  auto checkpoint = store_.newest_good(steps, open, [this](const std::string& damage) {
    if (context_.world.is_main()) context_.log.warning(damage);
  });
  if (!checkpoint && context_.world.is_main()) check_none(steps.size());
  return checkpoint;
}

void RunCheckpoints::put_aside() {
  const auto aside = store_.move_aside();
  if (aside) context_.log.info(cat("Checkpoints of an earlier run were moved to ", aside->string()));
}

void RunCheckpoints::check_none(size_t damaged) const {
  if (damaged > 0) {
    throw CheckpointError("checkpoint",
                          cat("no checkpoint of the run is whole: path=", store_.folder().string(), ", damaged=", damaged),
                          "Restore one from a copy, or start over without --resume, which moves them aside");
  }
  context_.log.info("There is no checkpoint to resume from: the run starts from the beginning");
}

void RunCheckpoints::start_or_resume() {
  const auto checkpoint = find();
  if (checkpoint) {
    load(*checkpoint);
  } else {
    load_initial_weights();
  }
  setup_.data_parallel->after_update();  // weights that are gathered follow what was loaded
  setup_.data_parallel->complete_weights();
  state_.resumed = checkpoint.has_value();
  parallel::barrier(context_.world.world_group());
  if (context_.world.size() > 1) parallel::check_replicas(setup_.table, setup_.layout.groups, "at the start");
}

void RunCheckpoints::claim() { store_.continue_from(state_.position.iteration); }

void RunCheckpoints::prune() {
  if (context_.world.is_main()) store_.prune(config_.loop.keep_checkpoints);
}

std::string RunCheckpoints::newest() const {
  const std::vector<int64_t> steps = store_.steps();
  return steps.empty() ? std::string() : store_.path_of(steps.front()).string();
}

}  // namespace welkin::train
