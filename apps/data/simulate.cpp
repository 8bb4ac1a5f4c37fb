// SPDX-License-Identifier: Apache-2.0
// `welkin data simulate nbody|weather --out DIR`, or `welkin data simulate --layout sc21|sc22|sc23|dl4sci25 --scale S --out DIR`:
// training files from simulated physics. docs/reference/simulate.md.
#include <CLI/CLI.hpp>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/cli/application.h"
#include "apps/cli/help.h"
#include "apps/cli/verbs.h"
#include "core/error.h"
#include "core/host.h"
#include "core/signals.h"
#include "core/stopwatch.h"
#include "core/text.h"
#include "core/thread_pool.h"
#include "data/simulate/globe/weather.h"
#include "data/simulate/universe/nbody.h"
#include "observe/log/progress.h"

namespace welkin::apps {
namespace {

// Which simulation makes the files of a tutorial.
const std::map<std::string, std::string> kLayouts{
    {"sc21", "nbody"}, {"sc22", "nbody"}, {"sc23", "weather"}, {"dl4sci25", "weather"}};

const std::map<std::string, data::simulate::StartOrder> kStarts{{"zeldovich", data::simulate::StartOrder::Zeldovich},
                                                                {"2lpt", data::simulate::StartOrder::Second}};

struct SimulateArguments {
  std::string layout;
  std::optional<double> scale;
  int threads = 0;
  bool quiet = false;
};

template <typename Options>
void add_shared(CLI::App& app, const std::string& kind, SimulateArguments& a, Options& options) {
  std::vector<std::string> layouts;
  for (const auto& [layout, simulation] : kLayouts) {
    if (simulation == kind) layouts.push_back(layout);
  }
  app.add_option("--out", options.out, "folder of the files")->type_name("DIR")->required();
  app.add_option("--seed", options.seed, "of all randomness")->capture_default_str();
  app.add_option("--layout", a.layout, "the tutorial whose files are made, at full size unless --scale says less")
      ->check(CLI::IsMember(layouts));
  app.add_option("--scale", a.scale, "share of the tutorial's full size, 0 to 1")->check(CLI::Range(1e-3, 1.0));
  app.add_option("--max_memory_gib", options.max_memory_gib, "bound of all buffers")->capture_default_str();
  app.add_option("--threads", a.threads, "threads; 0 = the cores of this process")
      ->capture_default_str()
      ->check(CLI::Range(0, 4096));
  app.add_flag("--overwrite", options.overwrite, "replace the result of another simulation in the folder");
  app.add_flag("--quiet", a.quiet, "show no progress");
}

// A size from the scale, unless it was given by a flag of its own.
template <typename T>
void given(const std::optional<T>& flag, T& value) {
  if (flag) value = *flag;
}

template <typename Options, typename Simulate>
int run(Application& application, const SimulateArguments& a, const Options& options, int64_t steps_in_all,
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

int simulate_nbody_verb(Application& application, int argc, char** argv) {
  CLI::App app("dark matter and gas in a training and a validation box (docs/reference/simulate.md)");
  SimulateArguments a;
  data::simulate::NbodyOptions options;
  std::optional<int64_t> edge, edge_valid;
  add_shared(app, "nbody", a, options);
  app.add_option("--edge", edge, "cells along the training box, even (default 64)");
  app.add_option("--edge_valid", edge_valid, "cells along the validation box (default half of --edge)");
  app.add_option("--cell_mpc_h", options.cell_mpc_h, "comoving edge of a cell, Mpc/h")->capture_default_str();
  app.add_option("--redshift", options.redshift, "of the fields")->capture_default_str();
  app.add_option("--redshift_start", options.redshift_start, "at which the particles are placed")->capture_default_str();
  app.add_option("--start", options.start, "how they are placed: zeldovich (first order) or 2lpt (second order)")
      ->transform(CLI::CheckedTransformer(kStarts).description(""))
      ->default_str("zeldovich");
  app.add_option("--steps", options.steps, "of the leapfrog")->capture_default_str();
  app.add_flag("--deconvolve", options.deconvolve, "sharpen the force by the cloud-in-cell window");
  app.add_flag("!--no_npy", options.npy, "leave out the channel-last npy twins");
  app.add_option("--scratch", options.scratch, "folder for boxes larger than memory (default --out)")->type_name("DIR");
  if (!parse_arguments(application, app, argc, argv)) return 0;
  if (a.scale || !a.layout.empty()) data::simulate::set_scale(options, a.scale.value_or(1.0));
  given(edge, options.edge);
  if (edge && !a.scale) options.edge_valid = std::max<int64_t>(8, *edge / 4 * 2);
  given(edge_valid, options.edge_valid);
  return run(application, a, options, 2 * options.steps, data::simulate::simulate_nbody);
}

void set_grid(const std::string& text, data::simulate::WeatherOptions& options) {
  const size_t cross = text.find('x');
  try {
    size_t used_height = 0, used_width = 0;
    const std::string width = cross == std::string::npos ? "" : text.substr(cross + 1);
    options.height = std::stoll(text.substr(0, cross), &used_height);
    options.width = std::stoll(width, &used_width);
    if (used_height == cross && used_width == width.size()) return;
  } catch (const std::logic_error&) {
    // no number: told below
  }
  throw ConfigError("simulate weather", cat("not a grid: grid=", text), "Give rows and columns as in --grid 48x96");
}

int simulate_weather_verb(Application& application, int argc, char** argv) {
  CLI::App app("years of a two-layer atmosphere as 20 channels (docs/reference/simulate.md)");
  SimulateArguments a;
  data::simulate::WeatherOptions options;
  std::optional<int64_t> years, years_valid, years_test, steps;
  std::optional<std::string> grid;
  add_shared(app, "weather", a, options);
  app.add_option("--years", years, "training years (default 2)");
  app.add_option("--years_valid", years_valid, "validation years that follow (default 1)");
  app.add_option("--years_test", years_test, "test years that follow (default 1)");
  app.add_option("--first_year", options.first_year, "first training year")->capture_default_str();
  app.add_option("--steps", steps, "6-hourly fields per year from January 1 (default 240; a whole year has 1460)");
  app.add_option("--grid", grid, "rows x columns, 90 to -90 degrees (default 48x96)");
  app.add_option("--truncation", options.truncation, "waves of the model; 0 = 21, or 42 from 96 rows on")->capture_default_str();
  app.add_option("--spin_up_days", options.spin_up_days, "that a year runs before it is written")->capture_default_str();
  if (!parse_arguments(application, app, argc, argv)) return 0;
  if (a.scale || !a.layout.empty()) data::simulate::set_scale(options, a.scale.value_or(1.0));
  given(years, options.years);
  given(years_valid, options.years_valid);
  given(years_test, options.years_test);
  given(steps, options.steps);
  if (grid) set_grid(*grid, options);
  const int64_t files = options.years + options.years_valid + options.years_test;
  return run(application, a, options, files * options.steps, data::simulate::simulate_weather);
}

// The kind by its word, or by the layout where there is none; empty: neither.
std::string kind_of(int argc, char** argv) {
  if (argc > 1 && argv[1][0] != '-') return argv[1];
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    std::string layout;
    if (word == "--layout" && i + 1 < argc) layout = argv[i + 1];
    if (word.starts_with("--layout=")) layout = word.substr(9);
    if (const auto row = kLayouts.find(layout); row != kLayouts.end()) return row->second;
  }
  return "";
}

}  // namespace

int verb_data_simulate(Application& application, int argc, char** argv) {
  const std::string kind = kind_of(argc, argv);
  const bool named = argc > 1 && kind == argv[1];
  std::string name = argv[0];
  if (named) {
    name += " " + kind;
    argv[1] = name.data();
    --argc, ++argv;
  }
  if (kind == "nbody") return simulate_nbody_verb(application, argc, argv);
  if (kind == "weather") return simulate_weather_verb(application, argc, argv);
  if (argc > 1 && asks_for_help(argv[1])) {
    print_forms(application, argv[0], {{"nbody", "boxes of dark matter and gas (U-Net)"}, {"weather", "years of weather (ViT)"}},
                "welkin data simulate --layout sc21|sc22|sc23|dl4sci25 --scale S --out DIR   a tutorial's files\n");
    return 0;
  }
  throw ConfigError("simulate", cat("which simulation: given=", kind.empty() ? "nothing" : kind, ", known=nbody, weather"),
                    "Name one, as in `welkin data simulate nbody --out DIR`, or a tutorial with --layout sc22 or sc23");
}

}  // namespace welkin::apps
