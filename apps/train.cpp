// SPDX-License-Identifier: Apache-2.0
// `welkin train`: resolves the configuration, meets the other processes of the run, and runs the trainer.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "apps/cli/dry_run.h"
#include "apps/cli/elastic_run.h"
#include "apps/cli/flags.h"
#include "apps/cli/help.h"
#include "apps/cli/rank_run.h"
#include "apps/cli/typed_command.h"
#include "apps/cli/verbs.h"
#include "config/flags/command_line.h"
#include "config/resolve/resolve.h"
#include "core/duration.h"
#include "core/error.h"
#include "core/process/signals.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "launch/batch/scheduler.h"
#include "launch/elastic/agent.h"
#include "launch/ranks.h"
#include "launch/worker_start.h"
#include "observe/log/console.h"
#include "observe/log/run_log.h"
#include "parallel/comm/world.h"
#include "train/device/device.h"
#include "train/device/memory_snapshot.h"
#include "train/device/peak_cache.h"
#include "train/inject/fault_injector.h"
#include "train/inject/faults.h"
#include "train/learn/registries.h"
#include "train/run/trainer.h"

namespace welkin::apps {
namespace {

const std::vector<config::ExtraFlag> kTrainFlags = {
    {"init_from", "PATH",
     "the weights that a run begins with: of a checkpoint, run folder, .safetensors or .pt file; a resumed run has its own"},
    {"init_map", "FROM=TO,...",
     "with --init_from: names of the file, as patterns, and those of the model: 'encoder.*=blocks.*,head.*='",
     config::Listed::InFull},
    {"init_partial", "", "with --init_from: take the weights that fit, leave the others as the seed makes them, and say which",
     config::Listed::InFull},
    {"find_lr", "[low=1e-7,high=10,steps=100]",
     "test learning rates instead of training: the rate rises from step to step, and lr_find.svg and .csv in the run folder show "
     "where the loss falls; prints the rate to begin with"},
    {"inject", "FAULTS",
     "make faults happen on purpose: a file, or for instance 'kill:step=5,phase=backward,rank=1;slow:step=7,seconds=2' (guide: "
     "troubleshooting)",
     config::Listed::InFull},
    {"measure_peak", "", "measure the peak that MFU refers to again, though one is kept for this processor",
     config::Listed::InFull},
    {"memory_snapshot", "FILE", "write a memory snapshot for PyTorch's memory viewer; rank R > 0 writes FILE.R",
     config::Listed::InFull},
    {"world", "N", "plan for N processes, with --dry_run; prints the groups of ranks and their placement on nodes"},
    {"nodes", "M", "with --world: on M nodes", config::Listed::InFull},
    {"profile", "[wait=1,warmup=1,active=3,repeat=1]",
     "trace every operator of a few steps: profile/*.pt.trace.json in the run folder, for TensorBoard and chrome://tracing, and "
     "a table"},
    {"timeline", "", "draw what the step and every reading thread does: profile/timeline.svg and .json in the run folder"},
    {"profile_epoch", "N", "the epoch, from 0, that profile, timeline and NVIDIA's tools look at (default: the run's first)",
     config::Listed::InFull},
    {"profile_steps", "A-B", "the steps of that epoch, from 0 (default: all)", config::Listed::InFull}};

// Nothing where --memory_snapshot is not given.
std::unique_ptr<train::MemorySnapshot> begin_snapshot(const config::CommandLine& line, const config::Resolved& resolved,
                                                      const launch::RankInfo& place) {
  if (!has_flag(line, "memory_snapshot")) return nullptr;
  const std::string file = text_flag(line, "memory_snapshot");
  const std::string path = place.rank == 0 ? file : cat(file, ".", place.rank);
  const int64_t limit_bytes = train::bytes_of_limit(resolved.config.backend.memory_limit_gib);
  const c10::Device device = train::choose_device(resolved.config.loop.device, place.local_rank);
  return std::make_unique<train::MemorySnapshot>(path, device, limit_bytes);
}

// A file that was asked for and could not be written is no reason to lose the run that it is about.
bool is_written(train::MemorySnapshot& snapshot, const std::function<void(const std::string&)>& warn) {
  try {
    snapshot.write();
    return true;
  } catch (const Error& error) {
    warn(error.what());
    return false;
  }
}

train::interchange::InitialWeights initial_weights(const config::CommandLine& line) {
  for (const char* flag : {"init_map", "init_partial"}) {
    if (!has_flag(line, flag) || has_flag(line, "init_from")) continue;
    throw ConfigError("command line", cat("there are no weights to begin with: --", flag), "Name their file with --init_from");
  }
  return {.renames = train::interchange::parse_renames(text_flag(line, "init_map")), .partial = has_flag(line, "init_partial")};
}

std::optional<train::LrRangeOptions> lr_range_of(const config::CommandLine& line, const config::Resolved& resolved) {
  if (!has_flag(line, "find_lr")) return {};
  if (resolved.config.loop.resume) {
    throw ConfigError("command line", "--find_lr begins a run of its own: it goes not together with --resume",
                      "Give the weights of the run with --init_from");
  }
  return train::parse_lr_range(text_flag(line, "find_lr"));
}

// Nothing where --inject is not given. A recorded step makes no losses that could be changed.
std::unique_ptr<train::FaultInjector> faults_of(const config::CommandLine& line, const config::Resolved& resolved,
                                                const launch::RankInfo& place) {
  if (!has_flag(line, "inject")) return nullptr;
  const std::vector<train::Fault> given = train::parse_faults(text_flag(line, "inject"), place.world_size);
  const auto has = [&](train::FaultKind kind) { return std::ranges::find(given, kind, &train::Fault::kind) != given.end(); };
  if (has(train::FaultKind::WrongGradient) && resolved.config.health.recheck_interval == 0) {
    throw ConfigError("inject", "nothing would show a wrong_gradient: recheck_interval=0", "Give --recheck_interval N");
  }
  if (has(train::FaultKind::DropConnection) && place.world_size == 1) {
    throw ConfigError("inject", "a run of one process has no connections that could drop: ranks=1",
                      "Leave drop_connection out, or start several ranks");
  }
  auto faults = std::make_unique<train::FaultInjector>(given, place.rank);
  if (faults->changes_losses() && resolved.config.backend.cuda_graph) {
    throw ConfigError("inject", "a recorded step makes no losses that a fault could change: cuda_graph=true",
                      "Leave cuda_graph, nan_gradient or spike out");
  }
  return faults;
}

const char* read_environment(const char* name) { return std::getenv(name); }

std::string benchy_file() {
  const char* path = read_environment("BENCHY_CONFIG_FILE");
  return path == nullptr ? std::string() : std::string(path);
}

// Since the job began, as far as this process knows: a launcher that starts processes again says when it was.
double seconds_of_job(const Stopwatch& of_process) {
  const char* const began = read_environment(launch::kJobStarted);
  const auto at = parse_count(began == nullptr ? "" : began);
  const double of_job = at ? std::difftime(std::time(nullptr), static_cast<std::time_t>(*at)) : 0;
  return std::max(of_job, of_process.seconds());
}

// The nearer of the limit that was given, from the beginning of the job, and the batch system's. One rank asks for all.
std::optional<train::TimeLimit> time_limit_of(const config::LoopConfig& config, const launch::RankInfo& place,
                                              double seconds_of_job) {
  if (place.rank != 0) return {};
  auto left = launch::time_left(read_environment, launch::output_of, std::time(nullptr));
  if (const auto given = parse_duration_s(config.time_limit)) {
    const double rest = static_cast<double>(*given) - seconds_of_job;
    if (!left || rest < left->seconds) left = {rest, "--time_limit"};
  }
  if (!left) return {};
  return train::TimeLimit(left->seconds, static_cast<double>(config.time_limit_margin), left->source);
}

bool is_to_be_requeued(const train::RunOutcome& outcome) {
  return !outcome.completed && (outcome.stop_signal == 0 || outcome.stop_signal == SIGUSR1);
}

// A time limit would find the next job where it found this one. Who sends a signal knows what it wants.
void check_time_was_enough(const train::RunOutcome& outcome, bool is_started_again) {
  if (outcome.own_steps > 0 || is_started_again || outcome.stop_signal == SIGUSR1) return;
  throw ConfigError("requeue", "the job is not queued again, for it has not done a step: its time was over before",
                    "Give it more time, or a smaller --time_limit_margin");
}

// The job's last act: the batch system ends it and queues it again.
void requeue(const std::string& command, observe::RunLog& log) {
  log.info(cat("Queueing the job again with: ", command));  // before: the batch system may end it at once
  if (launch::output_of(command)) return;
  throw ConfigError("requeue", cat("the batch system refuses to queue the job again: command=", command),
                    "See its message above, and submit the job by hand: it continues from the checkpoint");
}

// Before the first step there is nothing to save, and a rank that stops ends the others.
bool is_end_by_signal(const Error& error, const InterruptWatch& interrupt) {
  const bool is_end = error.exit_code() == ExitCode::Interrupted || error.exit_code() == ExitCode::Comm;
  return is_end && interrupt.signal_number() == SIGUSR1;
}

// Of an elastic job. What this rank has when the round ends is left for the next one, and the connections are shut down before
// anything is destroyed that may wait in them.
train::RunOutcome train_round(const train::TrainerContext& context, const RoundCall& call) {
  train::Trainer trainer(context);
  try {
    train::RunOutcome outcome = trainer.run();
    if (outcome.regroups) {
      trainer.carry_state();
      call.end();
    }
    return outcome;
  } catch (const CommError&) {
    call.end();
    trainer.carry_state();
    throw;
  } catch (const std::exception&) {
    if (call.is_over()) trainer.carry_state();
    throw;
  }
}

void check_elastic(const launch::RankInfo& place, const config::Resolved& resolved, bool finds_lr) {
  if (place.elastic.empty() || !(finds_lr || resolved.config.switches.enable_benchy)) return;
  throw ConfigError("elastic", cat("what measures needs the same ranks to its end: ", finds_lr ? "--find_lr" : "--enable_benchy"),
                    "Leave --elastic out");
}

// What the rounds of a run have in common: all but who the ranks are.
struct TrainCall {
  Application& application;
  int argc;
  char** argv;
  const config::CommandLine& line;
  train::ProfileOptions profile;
  train::interchange::InitialWeights weights;
  std::optional<train::LrRangeOptions> find_lr;
  std::string requeue_command;
  bool is_started_again;  // in the place of a process that was lost, of whose steps this one does not know
  Stopwatch since_start;
  train::FaultInjector* faults;
  std::unique_ptr<train::MemorySnapshot> snapshot;
};

// The run of these ranks, or their part of it: `round` of an elastic job, else null.
RoundEnd train_in(TrainCall& call, const InterruptWatch& interrupt, const launch::RankInfo& place,
                  const config::Resolved& resolved, parallel::World& world, const RoundCall* round) {
  observe::Console console({.fd = world.is_main() ? STDERR_FILENO : -1});  // the first rank speaks for all
  observe::RunLog log(console, {.enabled = world.is_main()});
  if (const std::string binding = launch::binding_text(read_environment); world.size() > 1 && !binding.empty()) {
    std::cerr << cat("rank ", place.rank, ": ", binding, "\n") << std::flush;
  }
  const train::TrainerContext context{
      .resolved = resolved,
      .registries = call.application.registries,
      .console = console,
      .log = log,
      .interrupt = interrupt,
      .world = world,
      .resume_command = resume_command(typed_command(call.application, call.argc, call.argv, place), resolved.config.loop.resume),
      .init_from = text_flag(call.line, "init_from"),
      .initial_weights = call.weights,
      .time_limit = time_limit_of(resolved.config.loop, place, seconds_of_job(call.since_start)),
      .find_lr = call.find_lr,
      .peak_file = train::peak_file(read_environment("XDG_CACHE_HOME"), read_environment("HOME")),
      .measure_peak = has_flag(call.line, "measure_peak"),
      .profile = call.profile,
      .span_recorder = call.faults != nullptr && call.faults->watches_spans() ? call.faults : nullptr,
      .faults = call.faults,
      .elastic = round == nullptr ? nullptr : &round->round,
      .benchy_file = benchy_file(),
      .say = [&](const std::string& text) { call.application.out << text << std::endl; },
      .say_now =
          [&](const std::string& note) {
            if (world.is_main()) return log.warning(note);
            std::cerr << cat("rank ", place.rank, ": ", note, "\n") << std::flush;
          }};
  bool has_lost = false;
  train::RunOutcome outcome;
  const auto body = [&] {
    try {
      outcome = round == nullptr ? train::Trainer(context).run() : train_round(context, *round);
    } catch (const Error& error) {
      const bool queues = world.is_main() && !call.requeue_command.empty() && round == nullptr;  // a round's end is no job's
      if (queues && is_end_by_signal(error, interrupt)) requeue(call.requeue_command, log);
      throw;
    }
    if (outcome.regroups) return false;
    has_lost = outcome.has_lost_records;
    if (call.snapshot && !is_written(*call.snapshot, context.say_now)) has_lost = true;
    has_lost = is_so_anywhere(world, has_lost);  // so that a launcher that stops the others stops nothing
    return true;
  };
  const auto report = [&](const char* what) {
    log.error(what);
    if (!log.enabled()) std::cerr << "welkin: " << what << std::endl;
    call.snapshot.reset();  // written here: a rank that stops runs no destructors
  };
  if (round != nullptr) {
    RoundEnd end = run_as_member(*round, body, report);
    if (!end.is_done) return end;
  } else {
    run_as_rank(world, body, report);
  }
  if (world.is_main() && !call.requeue_command.empty() && is_to_be_requeued(outcome)) {
    check_time_was_enough(outcome, call.is_started_again);
    requeue(call.requeue_command, log);
  }
  // Who stops a run by hand does not want what comes after it; a scheduler's signal is how a job ends.
  if (outcome.stop_signal == SIGINT) return {.is_done = true, .code = static_cast<int>(ExitCode::Interrupted)};
  return {.is_done = true, .code = static_cast<int>(has_lost ? ExitCode::Data : ExitCode::Done)};
}

}  // namespace

int verb_train(Application& application, int argc, char** argv) {
  const config::CommandLine line = config::parse(argc, argv, kTrainFlags);
  if (line.help != config::Help::Off) {
    print_help(application, {.program = argv[0], .extra = kTrainFlags, .common = config::Common::Training}, line.help);
    return 0;
  }
  InterruptWatch interrupt(InterruptWatch::Watched::Requeue);
  const Stopwatch since_start;
  const launch::RankInfo place = launch::find_ranks(read_environment);
  const int64_t world_size = is_dry_run(line)        ? whole_flag(line, "world", place.world_size)
                             : place.elastic.empty() ? place.world_size
                                                     : ranks_of_job(place);
  label_process(place);
  const config::Resolved resolved = config::resolve(line, world_size, application.registries.known_names());
  if (is_dry_run(line)) {
    if (place.rank == 0) print_configuration(application, line, resolved, world_size, whole_flag(line, "nodes", 1));
    return 0;
  }
  if (place.elastic.empty()) label_process(place, resolved.config.parallel);
  const auto find_lr = lr_range_of(line, resolved);
  check_elastic(place, resolved, find_lr.has_value());
  const auto faults = is_started_again(place) ? nullptr : faults_of(line, resolved, place);
  TrainCall call{.application = application,
                 .argc = argc,
                 .argv = argv,
                 .line = line,
                 .profile = train::parse_profile_options(line.extra),
                 .weights = initial_weights(line),
                 .find_lr = find_lr,
                 .requeue_command = resolved.config.loop.requeue ? launch::requeue_command(read_environment) : std::string(),
                 .is_started_again = is_started_again(place),
                 .since_start = since_start,
                 .faults = faults.get(),
                 .snapshot = begin_snapshot(line, resolved, place)};
  if (!place.elastic.empty()) {
    interrupt.watch_all();
    return run_elastic_rank(place, resolved, interrupt, [&](const RoundCall& round) {
      return train_in(call, interrupt, round.place, round.resolved, round.world, &round);
    });
  }
  parallel::World world = parallel::World::connect(place, world_options(resolved.config));
  interrupt.watch_all();
  return train_in(call, interrupt, place, resolved, world, nullptr).code;
}

}  // namespace welkin::apps
