// SPDX-License-Identifier: Apache-2.0
// The modes that compare configurations: the ladder of switches, a sweep over a key, and the gain of each single switch.
#include "bench/step/trials.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "apps/bench/bench.h"
#include "apps/bench/sweep.h"
#include "bench/step/choices.h"
#include "config/schema/key.h"
#include "core/error.h"
#include "core/text.h"
#include "train/device/device.h"
#include "train/learn/registries.h"

namespace welkin::apps {
namespace {

config::RunConfig resolved_with(const BenchRequest& request, const bench::KeyValues& pairs, const std::string& flag) {
  config::CommandLine line = request.line;
  for (const auto& [key, value] : pairs) line.settings.push_back({key, value, cat(flag, " ", key)});
  return config::resolve(line, request.world.size(), request.application.registries.known_names()).config;
}

// Beside one of these flags, --mode selects the steps that are measured.
bench::StepMode step_mode_of(const BenchRequest& request, bench::StepMode otherwise) {
  const std::string name = bench_flag(request, "mode");
  if (name.empty()) return otherwise;
  for (const bench::StepMode mode : {bench::StepMode::Synthetic, bench::StepMode::Full, bench::StepMode::NoComm}) {
    if (name == bench::step_mode_name(mode)) return mode;
  }
  throw ConfigError("bench", cat("steps are measured one kind at a time: mode=", name), "Choose synthetic, full or nocomm");
}

std::vector<bench::TrialRow> measure(const BenchRequest& request, const std::vector<bench::Trial>& trials, bench::StepMode mode) {
  return bench::run_trials(trials, mode,
                           {.registries = request.application.registries,
                            .world = request.world,
                            .device = request.device,
                            .windows = request.windows});
}

BenchResult as_result(const std::string& title, const std::vector<bench::TrialRow>& rows, bench::StepMode mode) {
  BenchResult result{.text = bench::trials_text(cat(title, " (", bench::step_mode_name(mode), ")"), rows),
                     .json = {},
                     .svg = bench::trials_svg(title, rows)};
  result.has_figures = std::ranges::any_of(rows, [](const bench::TrialRow& row) { return row.rates.has_value(); });
  result.json["steps"] = bench::step_mode_name(mode);
  result.json["rows"] = bench::trials_json(rows);
  return result;
}

// Draws a curve over numbers, else bars as for every comparison.
std::string sweep_svg(const Sweep& sweep, const std::vector<bench::TrialRow>& rows) {
  const std::string title = cat("sweep over ", sweep.key);
  const std::vector<double> places = numbers_of(sweep);
  return places.size() < 2 ? bench::trials_svg(title, rows) : bench::trials_svg(title, rows, sweep.key, places);
}

bool feeds_the_step(const std::string& key) {
  const config::Key* row = config::find_key(key);
  return row != nullptr && row->path.starts_with("data.");
}

// Several ranks have chosen their device once for the whole process; a process alone may choose one for each row.
void choose_device_of(bench::Trial& trial, const BenchRequest& request) {
  if (request.world.size() > 1) {
    throw ConfigError("bench", "several ranks have met on one kind of device: --sweep device", "Sweep it on one process");
  }
  try {
    trial.device = train::choose_device(trial.config->loop.device, request.device.is_cuda() ? request.device.index() : 0);
  } catch (const ConfigError& error) {
    trial.config.reset();
    trial.note = error.what();
  }
}

config::DeviceKind kind_of(c10::Device device) { return device.is_cpu() ? config::DeviceKind::Cpu : config::DeviceKind::Cuda; }

// A value that does not fit the rest of the configuration becomes a row with the reason: nobody asked for it by name.
bench::Trial trial_of_choice(const BenchRequest& request, const std::string& key, const std::string& value) {
  bench::Trial trial{.name = cat(key, "=", value), .config = {}, .note = {}};
  try {
    trial.config = resolved_with(request, {{key, value}}, "--explore");
  } catch (const ConfigError& error) {
    trial.note = error.what();
  }
  return trial;
}

}  // namespace

BenchResult bench_ladder(const BenchRequest& request) {
  std::vector<bench::Trial> trials;
  bench::KeyValues settings;
  for (const bench::Rung& rung : bench::ladder_rungs(request.config, kind_of(request.device))) {
    settings.insert(settings.end(), rung.settings.begin(), rung.settings.end());
    bench::Trial trial{.name = trials.empty() ? rung.name : cat("+ ", rung.name), .config = {}, .note = rung.note};
    if (rung.is_measured) trial.config = resolved_with(request, settings, "--ladder");
    trials.push_back(std::move(trial));
  }
  const bench::StepMode mode = step_mode_of(request, bench::StepMode::Full);
  return as_result("ladder", measure(request, trials, mode), mode);
}

BenchResult bench_sweep(const BenchRequest& request) {
  const Sweep sweep = parse_sweep(bench_flag(request, "sweep"));
  const config::Key* key = config::find_key(sweep.key);
  std::vector<bench::Trial> trials;  // all are resolved, and so refused, before the first is measured
  for (const std::string& value : sweep.values) {
    trials.push_back(
        {.name = cat(sweep.key, "=", value), .config = resolved_with(request, {{sweep.key, value}}, "--sweep"), .note = {}});
    if (key != nullptr && key->path == "loop.device") choose_device_of(trials.back(), request);
  }
  const auto otherwise = feeds_the_step(sweep.key) ? bench::StepMode::Full : bench::StepMode::Synthetic;
  const bench::StepMode mode = step_mode_of(request, otherwise);
  const std::vector<bench::TrialRow> rows = measure(request, trials, mode);
  BenchResult result = as_result(cat("sweep over ", sweep.key), rows, mode);
  result.svg = sweep_svg(sweep, rows);
  result.json["key"] = sweep.key;
  return result;
}

BenchResult bench_explore(const BenchRequest& request) {
  const bench::StepMode mode = step_mode_of(request, bench::StepMode::Synthetic);
  std::vector<bench::Trial> trials{{.name = "as configured", .config = request.config, .note = {}}};
  const bool reads = mode == bench::StepMode::Full;
  const bool has_convolutions =
      request.application.registries.models.at(request.config.model.model).has_convolutions.value_or(false);
  const bench::PresentValues present = bench::present_values(request.config, request.world.size(), has_convolutions);
  for (const auto& choice : bench::switch_choices(request.config, kind_of(request.device), present, reads)) {
    for (const std::string& value : choice.values) trials.push_back(trial_of_choice(request, choice.key, value));
  }
  const std::vector<bench::TrialRow> rows = measure(request, trials, mode);
  BenchResult result = as_result("what a switch would gain", rows, mode);
  const bench::TrialRow* best = bench::fastest(rows);
  if (best == nullptr) return result;
  const bool is_any = best->name != rows.front().name;
  result.text += cat("fastest: ", best->name, is_any ? "" : ": no switch gains more than the windows differ", "\n");
  result.json["fastest"] = best->name;
  return result;
}

}  // namespace welkin::apps
