// SPDX-License-Identifier: Apache-2.0
// The modes that put configurations side by side: the ladder of switches, a sweep over a key, and what each switch would gain.
#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench.h"
#include "config/key.h"
#include "config/switches.h"
#include "core/error.h"
#include "core/host.h"
#include "core/text.h"
#include "observe/plot.h"
#include "ops/instruction_set.h"
#include "train/bench/trials.h"
#include "train/device.h"
#include "train/registries.h"

namespace welkin::apps {
namespace {

namespace bench = train::bench;
using Pairs = std::vector<std::pair<std::string, std::string>>;  // keys and values

config::RunConfig resolved_with(const BenchRequest& request, const Pairs& pairs, const std::string& flag) {
  config::CommandLine line = request.line;
  for (const auto& [key, value] : pairs) line.settings.push_back({key, value, cat(flag, " ", key)});
  return config::resolve(line, request.world.size(), request.application.registries.known_names()).config;
}

// --mode beside one of these flags says which steps are measured.
bench::StepMode step_mode_of(const BenchRequest& request, bench::StepMode otherwise) {
  const std::string name = bench_flag(request, "mode");
  if (name.empty()) return otherwise;
  for (const bench::StepMode mode : {bench::StepMode::Synthetic, bench::StepMode::Full, bench::StepMode::NoComm}) {
    if (name == bench::step_mode_name(mode)) return mode;
  }
  throw ConfigError("bench", cat("steps are measured one kind at a time: mode=", name), "Choose synthetic, full or nocomm");
}

std::vector<bench::TrialRow> measure(const BenchRequest& request, const std::vector<bench::Trial>& trials, bench::StepMode mode) {
  std::vector<bench::TrialRow> rows = bench::run_trials(trials, mode,
                                                        {.registries = request.application.registries,
                                                         .world = request.world,
                                                         .device = request.device,
                                                         .windows = request.windows});
  train::configure_torch(request.config);
  return rows;
}

BenchResult as_result(const std::string& title, const std::vector<bench::TrialRow>& rows, bench::StepMode mode) {
  BenchResult result{.text = bench::trials_text(cat(title, " (", bench::step_mode_name(mode), ")"), rows),
                     .json = {},
                     .svg = bench::trials_svg(title, rows)};
  result.json["steps"] = bench::step_mode_name(mode);
  result.json["rows"] = bench::trials_json(rows);
  return result;
}

// A rung turns on what the tutorials turn on next; those below stay. `meaning`: the switch and value whose row of
// config/switches.h says what it does here.
struct Rung {
  const char* name;
  Pairs settings;
  std::pair<std::string_view, std::string_view> meaning;
};

std::vector<Rung> ladder_rungs(const config::RunConfig& config) {
  const int64_t threads = config.data.num_data_workers > 0 ? config.data.num_data_workers : 4;
  const bool is_half = config.precision.amp_mode == config::AmpMode::Fp16;
  return {
      {"baseline",
       {{"num_data_workers", "0"},
        {"prefetch_depth", "1"},
        {"persistent_workers", "false"},
        {"pin_memory", "false"},
        {"non_blocking", "false"},
        {"amp_mode", "none"},
        {"enable_apex", "false"},
        {"enable_fused", "false"},
        {"enable_jit", "false"}},
       {}},
      {"reading threads",
       {{"num_data_workers", std::to_string(threads)}, {"prefetch_depth", "2"}, {"persistent_workers", "true"}},
       {}},
      {"device pipeline", {{"pin_memory", "true"}, {"non_blocking", "true"}}, {"pin_memory", "on"}},
      {"mixed precision", {{"amp_mode", is_half ? "fp16" : "bf16"}}, {}},
      {"fused optimizer", {{"enable_apex", "true"}, {"enable_fused", "true"}}, {"enable_fused", "on"}},
      {"fused operators", {{"enable_jit", "true"}}, {"enable_jit", "on"}},
  };
}

std::string meaning_of(const Rung& rung, bool is_gpu) {
  for (const config::SwitchMeaning& row : config::switch_meanings()) {
    if (row.name == rung.meaning.first && row.value == rung.meaning.second) return std::string(is_gpu ? row.gpu : row.cpu);
  }
  return {};
}

// Switches that change nothing: their rows say so in these words.
bool changes_nothing(const std::string& meaning) {
  return meaning.starts_with("no effect") || meaning.find("in any case") != std::string::npos ||
         meaning.starts_with("nothing to compile");
}

struct Sweep {
  std::string key;
  std::vector<std::string> values;
};

Sweep parse_sweep(const std::string& text) {
  const size_t equals = text.find('=');
  Sweep sweep{.key = text.substr(0, equals), .values = {}};
  for (size_t at = equals; at != std::string::npos;) {
    const size_t comma = text.find(',', at + 1);
    sweep.values.push_back(text.substr(at + 1, comma == std::string::npos ? comma : comma - at - 1));
    at = comma;
  }
  const bool is_whole = !sweep.key.empty() && !sweep.values.empty() && std::ranges::find(sweep.values, "") == sweep.values.end();
  if (is_whole) return sweep;
  throw ConfigError("bench", cat("no sweep: --sweep ", text),
                    "Write --sweep key=value,value, for instance --sweep threads=1,2,4");
}

std::optional<double> number_in(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  return {};
}

// Over numbers a curve; else the bars that every comparison has.
std::string sweep_svg(const Sweep& sweep, const std::vector<bench::TrialRow>& rows) {
  observe::LinePlot plot;
  plot.title = cat("sweep over ", sweep.key);
  plot.x.title = sweep.key;
  plot.y = {.title = "samples/s", .low = 0.0};
  plot.curves.resize(1);
  observe::Curve& curve = plot.curves.front();
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::optional<double> x = number_in(sweep.values[i]);
    if (!x) return bench::trials_svg(plot.title, rows);
    if (!rows[i].rates) continue;
    curve.x.push_back(*x);
    curve.y.push_back(rows[i].rates->median());
    curve.low.push_back(rows[i].rates->min());
    curve.high.push_back(rows[i].rates->max());
  }
  return observe::svg(plot);
}

bool feeds_the_step(const std::string& key) {
  const config::Key* row = config::find_key(key);
  return row != nullptr && row->path.starts_with("data.");
}

// The values that a switch could have besides the present one.
struct Choice {
  const char* key;
  std::vector<std::string> values;
  std::string present;
};

std::vector<std::string> fewer_threads() {
  std::vector<std::string> counts;
  for (int threads = usable_cores(); threads > 0; threads /= 2) counts.push_back(std::to_string(threads));
  return counts;
}

std::vector<std::string> supported_sets() {
  std::vector<std::string> names;
  for (const ops::InstructionSet set : {ops::InstructionSet::Portable, ops::InstructionSet::Avx2, ops::InstructionSet::Avx512}) {
    if (ops::is_supported(set)) names.emplace_back(ops::name_of(set));
  }
  return names;
}

std::vector<std::string> smaller_passes(int64_t local_batch) {
  std::vector<std::string> sizes;
  for (int64_t samples = local_batch; samples > 0 && sizes.size() < 4; samples /= 2) sizes.push_back(std::to_string(samples));
  return sizes;
}

std::vector<Choice> choices_of(const BenchRequest& request) {
  const config::RunConfig& config = request.config;
  const int64_t ranks =
      std::max<int64_t>(1, request.world.size() / (config.parallel.tensor_parallel * config.parallel.context_parallel));
  const int64_t local = std::max<int64_t>(1, config.loop.global_batch_size / ranks);
  const int64_t micro = config.loop.micro_batch_size > 0 ? config.loop.micro_batch_size : local;
  std::vector<Choice> choices{
      {"amp_mode", {"none", "bf16"}, config.precision.amp_mode == config::AmpMode::None ? "none" : "bf16"},
      {"micro_batch_size", smaller_passes(local), std::to_string(micro)}};
  if (!request.device.is_cpu()) return choices;
  choices.push_back({"backend.gemm", {"mkl", "onednn"}, config.backend.gemm});
  choices.push_back({"backend.instruction_set", supported_sets(), config.backend.instruction_set});
  choices.push_back({"threads", fewer_threads(), std::to_string(config.loop.threads)});
  return choices;
}

}  // namespace

BenchResult bench_ladder(const BenchRequest& request) {
  std::vector<bench::Trial> trials;
  Pairs settings;
  for (const Rung& rung : ladder_rungs(request.config)) {
    settings.insert(settings.end(), rung.settings.begin(), rung.settings.end());
    const std::string meaning = meaning_of(rung, !request.device.is_cpu());
    bench::Trial trial{.name = trials.empty() ? std::string(rung.name) : cat("+ ", rung.name), .config = {}, .note = meaning};
    if (!changes_nothing(meaning)) trial.config = resolved_with(request, settings, "--ladder");
    trials.push_back(std::move(trial));
  }
  trials.push_back({.name = "+ graphs",
                    .config = {},
                    .note = request.device.is_cpu() ? "no effect: a CPU has no launches to save" : "not built in"});
  const bench::StepMode mode = step_mode_of(request, bench::StepMode::Full);
  return as_result("ladder", measure(request, trials, mode), mode);
}

BenchResult bench_sweep(const BenchRequest& request) {
  const Sweep sweep = parse_sweep(bench_flag(request, "sweep"));
  std::vector<bench::Trial> trials;  // all are resolved, and so refused, before the first is measured
  for (const std::string& value : sweep.values) {
    trials.push_back(
        {.name = cat(sweep.key, "=", value), .config = resolved_with(request, {{sweep.key, value}}, "--sweep"), .note = {}});
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
  std::vector<bench::Trial> trials{{.name = "as configured", .config = request.config, .note = {}}};
  for (const Choice& choice : choices_of(request)) {
    for (const std::string& value : choice.values) {
      if (value == choice.present) continue;
      trials.push_back({.name = cat(choice.key, "=", value),
                        .config = resolved_with(request, {{choice.key, value}}, "--explore"),
                        .note = {}});
    }
  }
  const bench::StepMode mode = step_mode_of(request, bench::StepMode::Synthetic);
  std::vector<bench::TrialRow> rows = measure(request, trials, mode);
  BenchResult result = as_result("what a switch would gain", rows, mode);
  const auto best =
      std::ranges::max_element(rows, {}, [](const bench::TrialRow& row) { return row.rates ? row.rates->median() : 0; });
  result.text += cat("fastest: ", best->name, "\n");
  result.json["fastest"] = best->name;
  return result;
}

}  // namespace welkin::apps
