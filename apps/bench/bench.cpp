// SPDX-License-Identifier: Apache-2.0
// welkin bench: how fast a configuration is on this machine. What it measures lives in src/bench/; a new mode is a row of
// kModes and a function of bench.h, a new study a row of kStudies and a function of bench_studies.h.
#include "apps/bench/bench.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "apps/bench/studies.h"
#include "apps/bench/windows.h"
#include "apps/cli/dry_run.h"
#include "apps/cli/help.h"
#include "apps/cli/rank_run.h"
#include "apps/cli/verbs.h"
#include "config/resolve/resolve.h"
#include "core/error.h"
#include "core/file.h"
#include "core/output_check.h"
#include "core/signals.h"
#include "core/text.h"
#include "ops/base/instruction_set.h"
#include "ops/gemm/gemm_provider.h"
#include "train/device/device.h"
#include "train/device/memory_report.h"
#include "train/device/process_settings.h"
#include "train/learn/registries.h"

namespace welkin::apps {
namespace {

enum class SelectedBy { ModeName, Flag };      // --mode NAME; --NAME
enum class Picture { None, Svg };              // whether --plot has something to write
enum class Steps { OfMode, Synthetic, None };  // what --mode beside the flag may say: any kind of step; synthetic; nothing

struct BenchMode {
  std::string_view name;
  SelectedBy selected_by;
  std::string_view metavar;  // of the flag; empty: a switch
  Picture picture;
  std::string_view help;
  BenchResult (*run)(const BenchRequest& request);
  Steps steps = Steps::OfMode;
};
constexpr std::array kModes{
    BenchMode{"io", SelectedBy::ModeName, "", Picture::None, "the data pipeline alone, without a model", bench_io},
    BenchMode{"synthetic", SelectedBy::ModeName, "", Picture::None,
              "steps over one batch of the configuration's shapes, no data file", bench_synthetic},
    BenchMode{"full", SelectedBy::ModeName, "", Picture::None, "steps fed by the data pipeline", bench_full},
    BenchMode{"nocomm", SelectedBy::ModeName, "", Picture::None, "as synthetic, with collectives that send nothing",
              bench_nocomm},
    BenchMode{"all", SelectedBy::ModeName, "", Picture::None, "all of these, and the bottleneck", bench_all},
    BenchMode{"layers", SelectedBy::Flag, "", Picture::None,
              "each layer: FLOPs, bytes, time, and share of what the machine allows", bench_layers, Steps::Synthetic},
    BenchMode{"memory", SelectedBy::Flag, "", Picture::None,
              "bytes of parameters, gradients, optimizer state and activations: by rank, and split or alike over which axis",
              bench_memory, Steps::None},
    BenchMode{"ladder", SelectedBy::Flag, "", Picture::Svg, "the tutorials' switches one after the other, and what each brings",
              bench_ladder},
    BenchMode{"sweep", SelectedBy::Flag, "KEY=V1,V2", Picture::Svg, "one run for each value of any key, side by side",
              bench_sweep},
    BenchMode{"explore", SelectedBy::Flag, "", Picture::Svg,
              "what each switch would gain: precision, kernels, threads, micro-batches", bench_explore},
};
constexpr std::string_view kDefaultMode = "all";

// A study needs no configuration or starts its ranks itself, and has flags of its own; its flag is written in full.
struct BenchStudy {
  std::string_view name, metavar, help;
  int (*run)(Application& application, int argc, char** argv);
  config::Listed listed = config::Listed::Always;
};
constexpr std::array kStudies{
    BenchStudy{"collectives", "",
               "every collective over every axis, fitted by the ring formula (welkin bench --collectives --help)",
               bench_collectives},
    BenchStudy{"scaling", "weak|strong",
               "one number of ranks after the other: a table and four plots (welkin bench --scaling weak --help)", bench_scaling},
    BenchStudy{
        "parallel_figure", "overlap|sections|adapter",
        "how much of the gradients' exchange, or of what tensor parallelism sends, is hidden over an emulated link; what the "
        "collectives cost over c10d (welkin bench --parallel_figure overlap --help)",
        bench_figures, config::Listed::InFull},
    BenchStudy{"tiles", "", "products of matrices with one size varied: rate, time and tiles (welkin bench --tiles --help)",
               bench_tiles},
};

bool is_asked_for(const BenchStudy& study, int argc, char** argv) {
  const std::string flag = cat("--", study.name);
  return std::any_of(argv + 1, argv + argc, [&](std::string_view word) { return word == flag || word.starts_with(flag + "="); });
}

std::vector<std::string> names_of_modes() {
  std::vector<std::string> names;
  for (const BenchMode& mode : kModes) {
    if (mode.selected_by == SelectedBy::ModeName) names.emplace_back(mode.name);
  }
  return names;
}

const std::vector<config::ExtraFlag>& bench_flags() {
  static const std::vector<config::ExtraFlag> flags = [] {
    std::vector<config::ExtraFlag> rows;
    std::string modes;
    for (const BenchMode& mode : kModes) {
      if (mode.selected_by == SelectedBy::Flag)
        rows.push_back({std::string(mode.name), std::string(mode.metavar), std::string(mode.help)});
      if (mode.selected_by == SelectedBy::ModeName) modes += cat(modes.empty() ? "" : "; ", mode.name, ": ", mode.help);
    }
    for (const BenchStudy& study : kStudies) {
      rows.push_back({.name = std::string(study.name),
                      .metavar = std::string(study.metavar),
                      .help = std::string(study.help),
                      .listed = study.listed,
                      .is_form = true});
    }
    rows.insert(rows.begin(), {"mode", join(names_of_modes(), "|"), cat("what is measured (", kDefaultMode, "): ", modes)});
    const std::vector<config::ExtraFlag> others{
        {"json", "FILE", "write the figures as JSON to this file; - prints them instead of the text"},
        {"plot", "FILE", "write the picture of a mode that has one to this file, as SVG"},
        {"synthetic", "", "standard-normal samples instead of files, in every mode"},
        {"serve", "",
         "windows in turns with another program, which asks for each by a line on standard input (docs/guide/speed.md)",
         config::Listed::InFull},
        {"windows", "N", "windows of time that are measured; the median is reported (5)", config::Listed::InFull},
        {"window_seconds", "S", "length of a window (1)", config::Listed::InFull},
        {"warmup_seconds", "S", "before the first window (0.5)", config::Listed::InFull},
    };
    rows.insert(rows.end(), others.begin(), others.end());
    return rows;
  }();
  return flags;
}

template <typename T>
T number_or(const config::CommandLine& line, const std::string& name, T otherwise, T least) {
  const auto found = line.extra.find(name);
  if (found == line.extra.end()) return otherwise;
  const std::string& text = found->second;
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= T{86400}) return value;
  throw ConfigError("bench", cat("not a usable number: --", name, "=", text), cat("Give a number from ", least, " to 86400"));
}

void check_steps(const BenchMode& mode, const std::string& name) {
  if (mode.steps == Steps::OfMode || (mode.steps == Steps::Synthetic && name == "synthetic")) return;
  const std::string what = mode.steps == Steps::None ? " makes no step" : " times the layers of synthetic steps";
  throw ConfigError("bench", cat("--", mode.name, what, ": mode=", name), "Leave --mode out");
}

// Two flags that are modes at once are a mistake. Beside one of them --mode says which steps are measured.
const BenchMode& mode_of(const config::CommandLine& line) {
  std::vector<std::string> given;
  const BenchMode* chosen = nullptr;
  for (const BenchStudy& study : kStudies) {
    if (line.extra.contains(std::string(study.name))) {
      throw ConfigError("bench", cat("a study has a command line of its own: --", study.name), "Write its flag in full");
    }
  }
  for (const BenchMode& mode : kModes) {
    const auto flag = line.extra.find(std::string(mode.name));
    if (mode.selected_by == SelectedBy::ModeName || flag == line.extra.end() || flag->second == "false") continue;
    given.push_back(cat("--", mode.name));
    chosen = &mode;
  }
  if (given.size() > 1) {
    throw ConfigError("bench", cat("one thing is measured at a time: ", join(given, ", ")), "Give one of them");
  }
  const auto named = line.extra.find("mode");
  if (chosen != nullptr) {
    if (named != line.extra.end()) check_steps(*chosen, named->second);
    return *chosen;
  }
  const std::string name = named == line.extra.end() ? std::string(kDefaultMode) : named->second;
  for (const BenchMode& mode : kModes) {
    if (mode.selected_by == SelectedBy::ModeName && name == mode.name) return mode;
  }
  throw ConfigError("bench", cat("unknown mode: mode=", name), cat("Choose one of: ", join(names_of_modes(), ", ")));
}

void check_picture(const config::CommandLine& line, const BenchMode& mode) {
  if (mode.picture == Picture::Svg || line.extra.find("plot") == line.extra.end()) return;
  throw ConfigError("bench", cat("this mode has no picture: mode=", mode.name),
                    "Leave --plot out, or take --ladder, --sweep or --explore");
}

// Before anything is measured: the figures of an hour would be lost.
void check_outputs(const config::CommandLine& line) {
  const auto json = line.extra.find("json"), plot = line.extra.find("plot");
  if (json != line.extra.end() && json->second != "-") check_output("bench", "--json", json->second);
  if (plot == line.extra.end()) return;
  if (plot->second == "-") throw ConfigError("bench", "a picture is not printed: --plot=-", "Name a file: --plot ladder.svg");
  check_output("bench", "--plot", plot->second);
}

bench::WindowOptions window_options(const config::CommandLine& line) {
  bench::WindowOptions windows;
  windows.windows = number_or<int64_t>(line, "windows", windows.windows, 1);
  windows.window_seconds = number_or<double>(line, "window_seconds", windows.window_seconds, 0.0);
  windows.warmup_seconds = number_or<double>(line, "warmup_seconds", windows.warmup_seconds, 0.0);
  return windows;
}

bool is_served(const config::CommandLine& line) {
  const auto found = line.extra.find("serve");
  return found != line.extra.end() && found->second != "false";
}

void check_serving(const config::CommandLine& line, const BenchMode& mode, int64_t ranks) {
  if (!is_served(line)) return;
  if (mode.selected_by == SelectedBy::Flag || mode.name == "all") {
    throw ConfigError("bench", cat("windows that are asked for are of one kind: --serve beside ", mode.name),
                      "Give --mode io, synthetic or full");
  }
  if (ranks > 1)
    throw ConfigError("bench", cat("--serve is for one process: ranks=", ranks), "Leave --serve or the launcher out");
  for (const char* flag : {"windows", "window_seconds"}) {
    if (line.extra.contains(flag))
      throw ConfigError("bench", cat("with --serve every line on standard input is a window: --", flag), "Leave it out");
  }
}

// What was measured, on what.
nlohmann::ordered_json description(const BenchMode& mode, const BenchRequest& request) {
  const config::RunConfig& config = request.config;
  return {{"mode", std::string(mode.name)},
          {"config", config.config},
          {"model", config.model.model},
          {"data_loader_config", config.data.data_loader_config.value_or("")},
          {"num_data_workers", config.data.num_data_workers},
          {"global_batch_size", config.loop.global_batch_size},
          {"ranks", request.world.size()},
          {"device", request.device.str()},
          {"threads", at::get_num_threads()},
          {"gemm", std::string(ops::name_of(ops::gemm_provider()))},
          {"instruction_set", std::string(ops::name_of(ops::instruction_set()))}};
}

// What was measured before an interruption is shown, and kept nowhere: half a comparison is none.
void hand_out(const BenchRequest& request, const BenchMode& mode, const BenchResult& result) {
  if (request.is_interrupted()) {
    request.application.err << result.text << std::flush;
    throw Interrupted("bench", "interrupted: what is shown above is all that was measured, and no file was written",
                      "Run it again");
  }
  nlohmann::ordered_json whole = description(mode, request);
  whole.update(result.json);
  const std::string text = whole.dump(2) + "\n";
  const std::string file = bench_flag(request, "json"), picture = bench_flag(request, "plot");
  request.application.out << (file == "-" ? text : result.text) << std::flush;
  if (!file.empty() && file != "-") write_file_atomically(file, text);
  if (!result.has_figures) {
    throw DataError("bench", cat("nothing could be measured", picture.empty() ? "" : ", so there is no picture"),
                    "Each row says why");
  }
  if (!picture.empty()) write_file_atomically(picture, result.svg);
}

// What holds a model says itself where the memory is.
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

std::string bench_flag(const BenchRequest& request, const std::string& name) {
  const auto found = request.line.extra.find(name);
  return found == request.line.extra.end() ? std::string() : found->second;
}

int verb_bench(Application& application, int argc, char** argv) {
  for (const BenchStudy& study : kStudies) {
    if (is_asked_for(study, argc, argv)) return study.run(application, argc, argv);
  }
  const config::CommandLine line = parse_bench(argc, argv);
  if (line.help != config::Help::Off) {
    print_help(application, {.program = argv[0], .extra = bench_flags(), .common = config::Common::Steps}, line.help);
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
  if (is_served(line)) windows.next_window = [&](std::optional<double> rate) { return server.next(rate); };
  std::optional<Interrupted> interruption;  // which all ranks agree on, so that all come to the end
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
