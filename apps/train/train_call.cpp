// SPDX-License-Identifier: Apache-2.0
#include "apps/train/train_call.h"

#include <unistd.h>

#include <csignal>
#include <functional>
#include <iostream>

#include "apps/cli/flags.h"
#include "apps/cli/rank_run.h"
#include "apps/cli/typed_command.h"
#include "apps/train/job.h"
#include "core/error.h"
#include "core/text.h"
#include "observe/log/console.h"
#include "observe/log/run_log.h"
#include "train/device/peak_cache.h"

namespace welkin::apps {
namespace {

// A requested file that cannot be written must not end the run that it is about.
bool is_written(train::MemorySnapshot& snapshot, const std::function<void(const std::string&)>& warn) {
  try {
    snapshot.write();
    return true;
  } catch (const Error& error) {
    warn(error.what());
    return false;
  }
}

std::string benchy_file() {
  const char* path = read_environment("BENCHY_CONFIG_FILE");
  return path == nullptr ? std::string() : std::string(path);
}

// A round of an elastic job. State that this rank has at the round's end is kept for the next one. Connections are shut down
// before anything that may wait in them is destroyed.
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

}  // namespace

RoundEnd train_in(TrainCall& call, const InterruptWatch& interrupt, const launch::RankInfo& place,
                  const config::Resolved& resolved, parallel::World& world, const RoundCall* round) {
  observe::Console console({.fd = world.is_main() ? STDERR_FILENO : -1});  // only the first rank prints
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
      const bool queues = world.is_main() && !call.requeue_command.empty() && round == nullptr;  // a round's end ends no job
      if (queues && is_end_by_signal(error, interrupt)) requeue(call.requeue_command, log);
      throw;
    }
    if (outcome.regroups) return false;
    has_lost = outcome.has_lost_records;
    if (call.snapshot && !is_written(*call.snapshot, context.say_now)) has_lost = true;
    has_lost = is_so_anywhere(world, has_lost);  // so that a launcher that stops the others interrupts nothing
    return true;
  };
  const auto report = [&](const char* what) {
    log.error(what);
    if (!log.enabled()) std::cerr << "welkin: " << what << std::endl;
    call.snapshot.reset();  // written here, since a rank that stops runs no destructors
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
  // After a stop by hand commands behind this one should not run; a scheduler's signal is a normal end of a job.
  if (outcome.stop_signal == SIGINT) return {.is_done = true, .code = static_cast<int>(ExitCode::Interrupted)};
  return {.is_done = true, .code = static_cast<int>(has_lost ? ExitCode::Data : ExitCode::Done)};
}

}  // namespace welkin::apps
