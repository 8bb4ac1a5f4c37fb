// SPDX-License-Identifier: Apache-2.0
#include "train/run/trainer.h"

#include <sstream>
#include <utility>
#include <vector>

#include "config/resolve/paths.h"
#include "config/resolve/switches.h"
#include "config/yaml/yaml_scalar.h"
#include "core/file.h"
#include "core/process/host.h"
#include "core/text.h"
#include "observe/log/table.h"
#include "observe/report/tracked_runs.h"
#include "parallel/comm/collectives.h"
#include "train/device/device.h"
#include "train/device/memory_report.h"
#include "train/health/run_health.h"
#include "train/interchange/sample_spec_json.h"
#include "train/learn/input_check.h"
#include "train/monitor/lr_finder.h"
#include "train/monitor/validation_metric.h"
#include "train/offload/offload.h"
#include "train/run/benchy_run.h"
#include "train/run/metric_logger.h"
#include "train/run/run_checkpoints.h"
#include "train/run/run_loop.h"
#include "train/run/run_report.h"
#include "train/run/validation.h"
#include "train/step/micro_batch.h"
#include "train/step/model_setup.h"
#include "train/step/step_graph.h"

namespace welkin::train {
namespace {

std::vector<std::string> table_of(const std::vector<MemoryItem>& items) {
  observe::Table table({{"memory of", observe::Align::Left}, {"size", observe::Align::Right}});
  for (const MemoryItem& item : items) table.add_row({item.name, format_bytes(static_cast<uint64_t>(item.bytes))});
  std::vector<std::string> lines;
  std::istringstream text(table.text());
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

ScalarFiles scalar_files(const TrainerContext& context, const RunFolder& folder) {
  const bool has_csv = context.resolved.config.output.csv;
  return {.events = folder.event_folder(), .csv = has_csv ? std::optional(folder.csv_file()) : std::nullopt};
}

}  // namespace

struct Trainer::Running {
  Running(const TrainerContext& context, TrainSetup& setup, RunData& data, RunState& state, ProfileSession& profile,
          const RunFolder& folder, c10::Device device, PhaseTimes* phase_times)
      : meter(device),
        validator(data.valid(), setup, context.resolved.config, device, data.reading_events(setup.layout)),
        checkpoints(context, folder.checkpoint_folder(), setup, meter, data, state, device) {
    checkpoints.start_or_resume();
    checkpoints.claim();
    if (context.world.is_main()) {
      folder.claim(context.resolved.config);
      write_file_atomically(folder.data_file(), interchange::sample_spec_json(data.valid().spec()) + "\n");
      if (context.elastic != nullptr) context.elastic->say_begun();
    }
    health.emplace(HealthParts{.config = context.resolved.config,
                               .world = context.world,
                               .log = context.log,
                               .setup = setup,
                               .folder = folder.path(),
                               .phase_times = phase_times,
                               .samples_of = [&data](const StepRecord& record) { return data.samples_of(record); }});
    report.emplace(context, setup, data, state, device, context.world.is_main() ? scalar_files(context, folder) : ScalarFiles{});
    health->tell([this](const std::string& event, int64_t step) { report->event(event, step); });
    if (context.faults != nullptr) open_faults(context, setup, folder, state.position.iteration);
    loop.emplace(LoopParts{.context = context,
                           .setup = setup,
                           .data = data,
                           .state = state,
                           .meter = meter,
                           .profile = profile,
                           .checkpoints = checkpoints,
                           .health = *health,
                           .report = *report,
                           .validator = validator,
                           .device = device});
  }

  void open_faults(const TrainerContext& context, const TrainSetup& setup, const RunFolder& folder, int64_t steps_done) {
    context.faults->open(
        folder.checkpoint_folder(), steps_done,
        [this, &context](const std::string& text, std::string_view kind, int64_t step) {
          context.warn_at_once(text);
          health->event("fault", step, {{"fault", std::string(kind)}, {"text", text}}, /*of_this_rank=*/true);
        },
        loss_ranks(setup, context.world.rank()));
  }

  // The ranks whose losses this rank makes.
  static std::vector<int64_t> loss_ranks(const TrainSetup& setup, int64_t rank) {
    if (!setup.pipeline) return {rank};
    return setup.pipeline->has_output() ? setup.layout.groups.along(parallel::Axis::Pp).ranks() : std::vector<int64_t>();
  }

  EpochMeter meter;
  Validator validator;
  std::optional<RunHealth> health;  // checkpoints that are being written tell it of injected faults
  std::optional<RunReport> report;  // it depends on the state, which may come from a checkpoint
  RunCheckpoints checkpoints;
  std::optional<RunLoop> loop;
};

Trainer::Trainer(TrainerContext context)
    : context_(std::move(context)), config_(context_.resolved.config), folder_(config_, context_.run_size()), data_(context_) {}

Trainer::~Trainer() { context_.world.trace(nullptr); }

RunOutcome Trainer::run() {
  try {
    return run_to_the_end();
  } catch (const std::exception& error) {
    say_failed(error.what());
    data_.notes().say_own([this](const std::string& note) { context_.warn_at_once(note); });
    throw out_of_memory(memory_error_in_flight(config_));
  }
}

// An error ends a round of an elastic job, but perhaps not the job.
void Trainer::say_failed(const std::string& error) {
  if (const std::string strangers = context_.world.strangers_text(); !strangers.empty()) context_.log.warning(strangers);
  if (context_.elastic != nullptr) return;
  if (running_ && running_->health) return running_->health->end("failed", error);
  if (lock_ && !context_.find_lr) write_failed_start(config_.health, folder_.path(), context_.world, error);
}

RunOutcome Trainer::run_to_the_end() {
  parallel::MeshGroups groups = make_mesh_groups(config_.parallel, context_.world);
  std::optional<BenchyRun> benchy;
  if (config_.switches.enable_benchy) benchy.emplace(context_);
  check_and_open(std::move(groups));
  open_folder();
  choose_micro_batch();
  start_profile();
  const int64_t before = cpu_memory_allocated();
  state_.length = data_.start_loader(layout_, profile_->tracer());
  buffer_bytes_ += cpu_memory_allocated() - before;
  const auto is_stopped = [this] {
    return running_ ? running_->loop->interrupted() : context_.world.size() == 1 && context_.interrupt.requested();
  };
  if (benchy) benchy->read(data_.loader(), profile_->tracer(), device_, is_stopped);
  make_setup();
  if (context_.find_lr) return find_lr();
  start_loop();
  if (benchy) {
    const bool completed = benchy->run(state_.length, [this](const Step::Source& next) { running_->loop->step_from(next); });
    return {.completed = completed, .stop_signal = completed ? 0 : running_->loop->stop_signal(), .folder = folder_.path()};
  }
  const int64_t first = first_step();
  const bool completed = running_->loop->run();
  if (running_->loop->regroups())
    return {.completed = false, .regroups = true, .iterations = state_.position.iteration, .folder = folder_.path()};
  if (context_.world.is_main()) {
    for (const std::string& line : observe::track_run(config_.output.track, folder_.path(), config_.output.expdir))
      context_.log.info(line);
  }
  return {.completed = completed,
          .stop_signal = completed ? 0 : running_->loop->stop_signal(),
          .iterations = state_.position.iteration,
          .own_steps = state_.position.iteration - first,
          .folder = folder_.path(),
          .has_lost_records = profile_->has_lost()};
}

// The first step of this process. It may run several rounds of an elastic job, and a late round may have no steps.
int64_t Trainer::first_step() const {
  if (context_.elastic == nullptr) return state_.position.iteration;
  if (!context_.elastic->first_step) context_.elastic->first_step = state_.position.iteration;
  return *context_.elastic->first_step;
}

void Trainer::check_and_open(parallel::MeshGroups groups) {
  device_ = choose_device(config_.loop.device, context_.world.rank_info().local_rank);
  session_.emplace(config_, device_);
  check_cuda_graph(config_, device_);
  check_cuda_graph(config_, context_.world.world_group());
  check_offload(config_, device_);
  config::check_paths(config_);
  folder_.check(config_, context_.run_size(), [this](const std::string& note) { folder_note_ = note; });
  data_.open(device_);
  check_metrics(config_, data_.valid().spec());
  check_state_transforms(config_, data_.train().spec());
  layout_ = make_layout(std::move(groups), {config_, context_.registries, data_.train().spec(), device_});
  data_.check(layout_);
  parallel::barrier(context_.world.world_group());  // all ranks have checked the folder before the first one writes there
}

void Trainer::open_folder() {
  if (context_.world.is_main()) {
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

// From here on the configuration has a number, as the folder and checkpoints do.
void Trainer::choose_micro_batch() {
  if (!config_.loop.micro_batch_size.is_auto) return;
  const SetupSource source{config_, context_.registries, data_.train().spec(), device_, context_.world.world_group()};
  const MicroBatchChoice choice = train::choose_micro_batch(layout_, source, context_.world.rank_info().local_size);
  context_.resolved.config.loop.micro_batch_size = choice.samples;
  context_.log.info(choice.note);
}

void Trainer::start_profile() {
  ProfileSession::Place place{.folder = folder_.path() / "profile",
                              .rank = static_cast<int>(context_.world.rank()),
                              .is_main = context_.world.is_main(),
                              .with_gpu = device_.is_cuda(),
                              .log = [this](const std::string& text) { context_.log.info(text); },
                              .warn = [this](const std::string& text) { context_.warn_at_once(text); }};
  observe::SpanSink* recorder = context_.span_recorder;
  if (config_.health.slow_rank_interval > 0 && context_.world.size() > 1) {
    phase_times_ = std::make_unique<PhaseTimes>(recorder);
    recorder = phase_times_.get();
  }
  profile_ = std::make_unique<ProfileSession>(context_.profile, config_, std::move(place), recorder);
  context_.world.trace(&profile_->tracer());
}

void Trainer::make_setup() {
  const SetupSource source{config_,
                           context_.registries,
                           data_.train().spec(),
                           device_,
                           context_.world.world_group(),
                           buffer_bytes_,
                           device_.is_cpu() ? buffer_bytes_ : 0};  // as much again for the validation loader
  setup_ = train::make_setup(layout_, source, state_.length);
  for (const std::string& note : {setup_->freeze_note, setup_->checkpointing_note, setup_->attention_note, layout_.shard_note}) {
    if (!note.empty()) context_.log.info(note);
  }
  for (const std::string& note : setup_->offload_notes) context_.log.info(note);
  state_.last_lr = setup_->lr_table->current();
  for (const std::string& line : doubtful_rates(config_, state_.length.total_steps)) context_.log.warning(line);
  const std::string& around_globe = context_.registries.models.at(config_.model.model).around_globe;
  for (const std::string& line : doubtful_grid(config_.model, around_globe, data_.train().spec())) context_.log.warning(line);
}

// The test is a run of its own: it uses nothing of the folder's other runs.
RunOutcome Trainer::find_lr() {
  EpochMeter meter(device_);
  RunCheckpoints(context_, folder_.checkpoint_folder(), *setup_, meter, data_, state_, device_).load_initial_weights();
  const LrRange range = train::find_lr({.setup = *setup_,
                                        .config = config_,
                                        .step = {.device = device_,
                                                 .world_group = context_.world.world_group(),
                                                 .dataset_size = data_.samples().size(),
                                                 .tracer = &profile_->tracer(),
                                                 .recorder = graph_recorder(config_, device_)},
                                        .next = [this] { return data_.loader().next(); },
                                        .stop_requested = [this] { return context_.interrupt.requested(); }},
                                       *context_.find_lr);
  data_.notes().share();
  if (context_.world.is_main()) write_lr_range(range, folder_.path());
  context_.log.info(describe_lr(range, config_));
  context_.log.info(cat("The curve: ", (folder_.path() / "lr_find.svg").string(), " and lr_find.csv beside it"));
  if (context_.world.is_main() && context_.say) context_.say(config::float_text(suggested_lr(range, config_)));
  return {.completed = true, .iterations = static_cast<int64_t>(range.points().size()), .folder = folder_.path()};
}

// Loads the checkpoint or begins, up to the first step.
void Trainer::start_loop() {
  const int64_t before = cpu_memory_allocated();
  running_ = std::make_unique<Running>(context_, *setup_, data_, state_, *profile_, folder_, device_, phase_times_.get());
  buffer_bytes_ += cpu_memory_allocated() - before;
  if (context_.elastic != nullptr) context_.elastic->carried.reset();  // only now: until here a failed exchange loses nothing
  running_->report->setup();
  if (!state_.all_steps_done()) {
    const int64_t first = state_.steps_so_far();
    profile_->plan({.steps_per_epoch = state_.length.steps_per_epoch,
                    .first = first,
                    .last = first + state_.length.total_steps - state_.position.iteration - 1});
  }
  context_.log.info("Starting Training Loop...");
  if (state_.resumed) {
    context_.log.info(cat("Resumed at step ", state_.position.iteration, " from ", running_->checkpoints.resumed_from()));
  }
  tell_round();
}

// In an elastic run: reports the changes since the round before.
void Trainer::tell_round() {
  const ElasticRound* round = context_.elastic;
  if (round == nullptr || round->number == 1) return;
  const int64_t ranks = context_.world.size();
  context_.log.warning(cat("event round: ", round->note, ", round=", round->number, ", ranks=", ranks, " of ", round->run_size,
                           ", step=", state_.position.iteration));
  running_->health->event("round", state_.position.iteration,
                          {{"round", round->number}, {"ranks", ranks}, {"of", round->run_size}, {"reason", round->note}});
}

void Trainer::carry_state() {
  if (running_ && running_->loop && state_.is_whole) context_.elastic->carried = running_->checkpoints.carry();
}

// Adds the content of the memory to the error, and logs it as a table.
MemoryError Trainer::out_of_memory(const MemoryError& found) const {
  MemoryError error = explained(found, known_memory(setup_.get(), buffer_bytes_, data_.has_loader()), config_);
  context_.log.error(cat("Out of memory at step ", state_.position.iteration + 1));
  for (const std::string& line : table_of(error.items())) context_.log.error(cat("  ", line));
  return error;
}

}  // namespace welkin::train
