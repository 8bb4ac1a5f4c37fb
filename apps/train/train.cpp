// SPDX-License-Identifier: Apache-2.0
// `welkin train`: resolves the configuration, meets the other processes of the run, and runs the trainer.
#include <string>
#include <vector>

#include "apps/cli/dry_run.h"
#include "apps/cli/elastic_run.h"
#include "apps/cli/flags.h"
#include "apps/cli/help.h"
#include "apps/cli/rank_run.h"
#include "apps/cli/verbs.h"
#include "apps/train/job.h"
#include "apps/train/requests.h"
#include "apps/train/train_call.h"
#include "launch/batch/scheduler.h"
#include "launch/worker_start.h"
#include "train/learn/registries.h"

namespace welkin::apps {
namespace {

const std::vector<config::ExtraFlag> kTrainFlags = {
    {"init_from", "PATH",
     "initial weights: from a checkpoint, run folder, .safetensors or .pt file; a resumed run keeps its own"},
    {"init_map", "FROM=TO,...",
     "with --init_from: names of the file, as patterns, and those of the model: 'encoder.*=blocks.*,head.*='",
     config::Listed::InFull},
    {"init_partial", "", "with --init_from: load the weights that fit, initialise the others from the seed, and say which",
     config::Listed::InFull},
    {"find_lr", "[low=1e-7,high=10,steps=100]",
     "test learning rates instead of training: the rate rises from step to step, and lr_find.svg and .csv in the run folder show "
     "where the loss falls; prints the rate to begin with"},
    {"inject", "FAULTS",
     "inject faults: a file, or for instance 'kill:step=5,phase=backward,rank=1;slow:step=7,seconds=2' (guide: troubleshooting)",
     config::Listed::InFull},
    {"measure_peak", "", "measure MFU's peak again, even if one is stored for this processor", config::Listed::InFull},
    {"memory_snapshot", "FILE", "write a memory snapshot for PyTorch's memory viewer; rank R > 0 writes FILE.R",
     config::Listed::InFull},
    {"world", "N", "plan for N processes, with --dry_run; prints the groups of ranks and their placement on nodes"},
    {"nodes", "M", "with --world: number of nodes", config::Listed::InFull},
    {"profile", "[wait=1,warmup=1,active=3,repeat=1]",
     "trace every operator of a few steps: profile/*.pt.trace.json in the run folder, for TensorBoard and chrome://tracing, and "
     "a table"},
    {"timeline", "", "draw what the step and every reading thread does: profile/timeline.svg and .json in the run folder"},
    {"profile_epoch", "N", "epoch, from 0, for profile, timeline and NVIDIA's tools (default: the run's first)",
     config::Listed::InFull},
    {"profile_steps", "A-B", "steps of that epoch, from 0 (default: all)", config::Listed::InFull}};

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
  // The sums of one host's ranks would go on through shared memory after their connections are gone.
  const auto options_of = [&](const config::RunConfig& config) {
    parallel::WorldOptions options = world_options(config);
    if (faults && faults->drops_connections()) options.shared_memory = parallel::SharedMemory::Off;
    return options;
  };
  if (!place.elastic.empty()) {
    interrupt.watch_all();
    return run_elastic_rank(place, resolved, options_of, interrupt, [&](const RoundCall& round) {
      return train_in(call, interrupt, round.place, round.resolved, round.world, &round);
    });
  }
  parallel::World world = parallel::World::connect(place, options_of(resolved.config));
  interrupt.watch_all();
  return train_in(call, interrupt, place, resolved, world, nullptr).code;
}

}  // namespace welkin::apps
