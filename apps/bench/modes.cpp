// SPDX-License-Identifier: Apache-2.0
#include "apps/bench/modes.h"

#include <algorithm>
#include <array>

#include "apps/bench/studies.h"
#include "core/error.h"
#include "core/text.h"

namespace welkin::apps {
namespace {

constexpr std::array kModes{
    BenchMode{"io", SelectedBy::ModeName, "", Picture::None, "the data pipeline alone, without a model", bench_io},
    BenchMode{"synthetic", SelectedBy::ModeName, "", Picture::None,
              "steps over one batch of the configuration's shapes, no data file", bench_synthetic},
    BenchMode{"full", SelectedBy::ModeName, "", Picture::None, "steps fed by the data pipeline", bench_full},
    BenchMode{"nocomm", SelectedBy::ModeName, "", Picture::None, "as synthetic, with collectives that send nothing",
              bench_nocomm},
    BenchMode{"all", SelectedBy::ModeName, "", Picture::None, "all of these, and the bottleneck", bench_all},
    BenchMode{"layers", SelectedBy::Flag, "", Picture::None, "each layer: FLOPs, bytes, time, and share of the machine's limit",
              bench_layers, Steps::Synthetic},
    BenchMode{"memory", SelectedBy::Flag, "", Picture::None,
              "bytes of parameters, gradients, optimizer state and activations: by rank, and split or alike over which axis",
              bench_memory, Steps::None},
    BenchMode{"ladder", SelectedBy::Flag, "", Picture::Svg, "the tutorials' switches, added in turn, with the gain of each",
              bench_ladder},
    BenchMode{"sweep", SelectedBy::Flag, "KEY=V1,V2", Picture::Svg, "one run for each value of any key, side by side",
              bench_sweep},
    BenchMode{"explore", SelectedBy::Flag, "", Picture::Svg, "gain of each switch: precision, kernels, threads, micro-batches",
              bench_explore},
};
constexpr std::string_view kDefaultMode = "all";

constexpr std::array kStudies{
    BenchStudy{"collectives", "",
               "every collective over every axis, fitted by the ring formula (welkin bench collectives --help)",
               bench_collectives},
    BenchStudy{"scaling", "weak|strong", "a series of numbers of ranks: a table and four plots (welkin bench scaling --help)",
               bench_scaling},
    BenchStudy{
        "parallel_figure", "overlap|sections|halos|adapter",
        "how much of the gradients' exchange, or of what tensor parallelism sends, is hidden over an emulated link; what the "
        "collectives cost over c10d (welkin bench parallel_figure --help)",
        bench_figures, config::Listed::InFull},
    BenchStudy{"tiles", "", "matmuls with one size varied: rate, time and tiles (welkin bench tiles --help)", bench_tiles},
};

std::vector<std::string> names_of_modes() {
  std::vector<std::string> names;
  for (const BenchMode& mode : kModes) {
    if (mode.selected_by == SelectedBy::ModeName) names.emplace_back(mode.name);
  }
  return names;
}

void check_steps(const BenchMode& mode, const std::string& name) {
  if (mode.steps == Steps::OfMode || (mode.steps == Steps::Synthetic && name == "synthetic")) return;
  const std::string what = mode.steps == Steps::None ? " makes no step" : " times the layers of synthetic steps";
  throw ConfigError("bench", cat("--", mode.name, what, ": mode=", name), "Leave --mode out");
}

}  // namespace

std::span<const BenchMode> bench_modes() { return kModes; }
std::span<const BenchStudy> bench_studies() { return kStudies; }

std::vector<std::string> usage_of_bench() {
  std::vector<std::string> modes{"step"}, studies;
  for (const BenchMode& mode : kModes) modes.emplace_back(mode.name);
  for (const BenchStudy& study : kStudies) studies.emplace_back(study.name);
  return {cat(join(modes, "|"), " --yaml_config FILE"), cat(join(studies, "|"), " [flags]")};
}

const BenchStudy* study_of(const std::vector<std::string>& arguments) {
  const auto* found = std::ranges::find_if(kStudies, [&](const BenchStudy& study) { return names_flag(arguments, study.name); });
  return found == kStudies.end() ? nullptr : found;
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
    rows.insert(rows.begin(), {"mode", join(names_of_modes(), "|"), cat("what to measure (", kDefaultMode, "): ", modes)});
    const std::vector<config::ExtraFlag> others{
        {"json", "FILE", "write the figures as JSON to this file; - prints them instead of the text"},
        {"plot", "FILE", "write the mode's picture, if it has one, to this file as SVG"},
        {"synthetic", "", "standard-normal samples instead of files, in every mode"},
        {"serve", "",
         "windows in turns with another program, which asks for each by a line on standard input (docs/guide/speed.md)",
         config::Listed::InFull},
        {"windows", "N", "number of measured time windows; the median is reported (5)", config::Listed::InFull},
        {"window_seconds", "S", "length of a window (1)", config::Listed::InFull},
        {"warmup_seconds", "S", "warm-up before the first window (0.5)", config::Listed::InFull},
    };
    rows.insert(rows.end(), others.begin(), others.end());
    return rows;
  }();
  return flags;
}

// Two mode flags at once are a mistake. Beside one of them, --mode selects the steps that are measured.
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

}  // namespace welkin::apps
