// SPDX-License-Identifier: Apache-2.0
// Shared by the simulations of `welkin data simulate`: flags, progress, and the closing text.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "apps/cli/application.h"
#include "core/error.h"
#include "core/process/host.h"
#include "core/process/signals.h"
#include "core/process/thread_pool.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "observe/log/progress.h"

namespace welkin::apps {

// The simulation that makes the files of each tutorial.
inline const std::map<std::string, std::string> kSimulatedLayouts{
    {"sc21", "nbody"}, {"sc22", "nbody"}, {"sc23", "weather"}, {"dl4sci25", "weather"}};

struct SimulateArguments {
  std::string layout;
  std::optional<double> scale;
  int threads = 0;
  bool quiet = false;
};

template <typename Options>
void add_simulate_flags(CLI::App& app, const std::string& kind, SimulateArguments& a, Options& options) {
  std::vector<std::string> layouts;
  for (const auto& [layout, simulation] : kSimulatedLayouts) {
    if (simulation == kind) layouts.push_back(layout);
  }
  app.add_option("--out", options.out, "folder of the files")->type_name("DIR")->required();
  app.add_option("--seed", options.seed, "random seed")->capture_default_str();
  app.add_option("--layout", a.layout, "tutorial whose files to make, at full size unless --scale is given")
      ->check(CLI::IsMember(layouts));
  app.add_option("--scale", a.scale, "share of the tutorial's full size, 0 to 1")->check(CLI::Range(1e-3, 1.0));
  app.add_option("--max_memory_gib", options.max_memory_gib, "memory limit of all buffers, GiB")->capture_default_str();
  app.add_option("--threads", a.threads, "threads; 0 = the cores of this process")
      ->capture_default_str()
      ->check(CLI::Range(0, 4096));
  app.add_flag("--overwrite", options.overwrite, "replace the result of another simulation in the folder");
  app.add_flag("--quiet", a.quiet, "show no progress");
}

// Overwrites the scale's size by that of its own flag, if given.
template <typename T>
void set_if_given(const std::optional<T>& flag, T& value) {
  if (flag) value = *flag;
}

template <typename Options, typename Simulate>
int run_simulation(Application& application, const SimulateArguments& a, const Options& options, int64_t steps_in_all,
                   const Simulate& simulate) {
  const InterruptWatch interrupt;
  const Stopwatch watch;
  observe::Console console;
  observe::Progress progress(console, {.title = "simulate", .total = steps_in_all, .unit = "steps"});
  ThreadPool pool({.num_threads = std::max(1, (a.threads > 0 ? a.threads : usable_cores()) - 1), .name = "simulate"});
  int64_t done = 0;
  const bool made = simulate(options, pool, [&](std::string_view what, int64_t, int64_t) {
    if (interrupt.requested())
      throw Interrupted("simulate", "interrupted: finished files stay, the others are gone", "Run the command again");
    if (!a.quiet) progress.update(++done, what);
  });
  progress.finish();
  if (!made) {
    application.out << "already there: " << options.out.string() << "/simulation.json is of this very command\n";
    return 0;
  }
  application.out << "simulated into " << options.out.string() << " in " << observe::format_duration(watch.seconds())
                  << ", at most " << format_bytes(peak_resident_bytes()) << " of memory\n";
  return 0;
}

int simulate_weather_verb(Application& application, int argc, char** argv);  // apps/data/simulate_weather.cpp

}  // namespace welkin::apps
