// SPDX-License-Identifier: Apache-2.0
// welkin bench: measures how fast a configuration is on this machine. src/bench/ holds the measurements, modes.cpp the table of
// modes.
#include "apps/bench/bench.h"

#include <algorithm>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "apps/bench/modes.h"
#include "apps/bench/windows.h"
#include "apps/cli/dry_run.h"
#include "apps/cli/flags.h"
#include "apps/cli/help.h"
#include "apps/cli/rank_run.h"
#include "apps/cli/verbs.h"
#include "config/resolve/resolve.h"
#include "core/error.h"
#include "core/process/signals.h"
#include "core/text.h"
#include "train/device/device.h"
#include "train/device/memory_report.h"
#include "train/device/process_settings.h"
#include "train/learn/registries.h"

namespace welkin::apps {
namespace {

// Explains out-of-memory errors. Code that holds a model has already said where the memory is.
BenchResult run_within_memory(const BenchMode& mode, const BenchRequest& request) {
  try {
    return mode.run(request);
  } catch (const std::exception&) {
    throw train::explained(train::memory_error_in_flight(request.config), {}, request.config);
  }
}

}  // namespace

bench::Peaks peaks_of_machine(const BenchRequest& request) {
  constexpr double kLeastSeconds = 0.05, kMostSeconds = 0.4;
  train::ProcessSettings settings = train::current_settings(request.device);
  settings.memory_limit_gib = 0;
  const train::ProcessSession without_limit(settings);
  return bench::measure_peaks(request.device, std::clamp(request.windows.window_seconds, kLeastSeconds, kMostSeconds));
}

config::CommandLine parse_bench(int argc, const char* const* argv) {
  config::CommandLine line = config::parse(argc, argv, bench_flags());
  if (line.extra["synthetic"] == "true") line.settings.push_back({"data_loader_config", "synthetic", "--synthetic"});
  return line;
}

std::string bench_flag(const BenchRequest& request, const std::string& name) { return text_flag(request.line, name); }

int verb_bench(Application& application, int argc, char** argv) {
  std::vector<std::string> arguments = with_flag_of_word({argv + 1, argv + argc});
  std::vector<char*> words{argv[0]};
  for (std::string& argument : arguments) words.push_back(argument.data());
  const int count = static_cast<int>(words.size());
  words.push_back(nullptr);
  if (const BenchStudy* study = study_of(arguments)) return study->run(application, count, words.data());
  const config::CommandLine line = parse_bench(count, words.data());
  if (line.help != config::Help::Off) {
    print_help(application,
               {.program = argv[0], .usage = usage_of_bench(), .extra = bench_flags(), .common = config::Common::Steps},
               line.help);
    return 0;
  }
  const BenchMode& mode = mode_of(line);
  check_picture(line, mode);
  bench::WindowOptions windows = window_options(line);
  const launch::RankInfo place = this_rank_info();
  check_serving(line, mode, place.world_size);
  if (place.rank == 0) check_outputs(line);  // it alone writes
  label_process(place);
  const config::Resolved resolved = config::resolve(line, place.world_size, application.registries.known_names());
  if (is_dry_run(line)) {
    if (place.rank == 0) print_configuration(application, line, resolved, place.world_size);
    return 0;
  }
  label_process(place, resolved.config.parallel);
  parallel::World world = parallel::World::connect(place, world_options(resolved.config));
  const InterruptWatch interrupt;
  bool is_stopped = false;
  const auto is_interrupted = [&] { return is_stopped || (world.size() == 1 && interrupt.requested()); };
  if (world.size() == 1) {
    windows.interrupted = is_interrupted;
  } else {
    windows.interrupted_anywhere = [&] { return is_stopped = is_stopped || is_so_anywhere(world, interrupt.requested()); };
  }
  WindowServer server(cat(mode.name, "_samples_per_s"), application.out, windows.interrupted);
  if (has_flag(line, "serve")) windows.next_window = [&](std::optional<double> rate) { return server.next(rate); };
  std::optional<Interrupted> interruption;  // all ranks agree on it, so that all come to the end
  const auto measure = [&] {
    const c10::Device device = train::choose_device(resolved.config.loop.device, place.local_rank);
    const train::ProcessSession session(resolved.config, device);
    const BenchRequest request{.application = application,
                               .line = line,
                               .config = resolved.config,
                               .world = world,
                               .device = device,
                               .windows = windows,
                               .is_interrupted = is_interrupted};
    const BenchResult result = run_within_memory(mode, request);
    if (world.is_main()) hand_out(request, mode, result);
  };
  run_as_rank(world, [&] {
    try {
      measure();
    } catch (const Interrupted& error) {
      interruption = error;
    }
  });
  if (interruption && world.is_main()) throw *interruption;
  return is_stopped ? static_cast<int>(ExitCode::Interrupted) : 0;
}

}  // namespace welkin::apps
