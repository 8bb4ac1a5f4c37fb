// SPDX-License-Identifier: Apache-2.0
// welkin bench: how fast a configuration is on this machine. Modes live in src/train/bench/, one file each; a new one is a row of
// kModes.
#include <array>
#include <charconv>
#include <ostream>
#include <string>
#include <vector>

#include "config/command_line.h"
#include "config/resolve.h"
#include "core/error.h"
#include "core/file.h"
#include "core/text.h"
#include "data/stage.h"
#include "train/bench/io_bench.h"
#include "train/device.h"
#include "train/registries.h"
#include "verbs.h"

namespace welkin::apps {
namespace {

struct BenchRequest {
  Application& application;
  const config::RunConfig& config;
  train::bench::WindowOptions windows;
};

// What a mode says: lines for a reader, and a JSON object.
struct BenchResult {
  std::string text, json;
};

BenchResult bench_io(const BenchRequest& request) {
  const config::RunConfig config =
      data::staged(request.config, [&](const std::string& line) { request.application.err << line << "\n"; });
  const auto& open = request.application.registries.datasets.at(config.data.dataset);
  const auto report = train::bench::run_io_bench(
      config, [&] { return open(config, data::Split::Train); }, train::choose_device(config.loop.device), request.windows);
  return {train::bench::io_text(report), train::bench::io_json(report, config)};
}

struct BenchMode {
  const char* name;
  BenchResult (*run)(const BenchRequest& request);
};
constexpr std::array kModes{BenchMode{"io", bench_io}};

const std::vector<config::ExtraFlag>& bench_flags() {
  static const std::vector<config::ExtraFlag> flags{
      {"mode", "MODE", "io: the data pipeline alone, without a model"},
      {"json", "FILE", "write the figures as JSON to this file; - prints them instead of the text"},
      {"synthetic", "", "standard-normal samples of the configuration's shapes, no files"},
      {"windows", "N", "windows of time that are measured; the median is reported (5)"},
      {"window_seconds", "S", "length of a window (1)"},
      {"warmup_seconds", "S", "before the first window (0.5)"},
  };
  return flags;
}

template <typename T>
T number_or(const config::CommandLine& line, const std::string& name, T otherwise, T least) {
  const auto found = line.extra.find(name);
  if (found == line.extra.end() || found->second.empty()) return otherwise;
  const std::string& text = found->second;
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= T{86400}) return value;
  throw ConfigError("bench", cat("not a usable number: --", name, "=", text), cat("Give a number from ", least, " to 86400"));
}

const BenchMode& mode_of(const config::CommandLine& line) {
  const auto found = line.extra.find("mode");
  const std::string name = found == line.extra.end() || found->second.empty() ? "io" : found->second;
  std::vector<std::string> names;
  for (const BenchMode& mode : kModes) {
    if (name == mode.name) return mode;
    names.emplace_back(mode.name);
  }
  throw ConfigError("bench", cat("unknown mode: mode=", name), cat("Choose one of: ", join(names, ", ")));
}

}  // namespace

int verb_bench(Application& application, int argc, char** argv) {
  config::CommandLine line = config::parse(argc, argv, bench_flags());
  if (line.help) {
    application.out << config::help_text(argv[0], bench_flags());
    return 0;
  }
  if (line.extra["synthetic"] == "true") line.settings.push_back({"data_loader_config", "synthetic", "--synthetic"});
  const BenchMode& mode = mode_of(line);
  train::bench::WindowOptions windows;
  windows.windows = number_or<int64_t>(line, "windows", windows.windows, 1);
  windows.window_seconds = number_or<double>(line, "window_seconds", windows.window_seconds, 0.0);
  windows.warmup_seconds = number_or<double>(line, "warmup_seconds", windows.warmup_seconds, 0.0);
  const config::Resolved resolved = config::resolve(line, kWorldSize, application.registries.known_names());
  train::configure_torch(resolved.config);
  const BenchResult result = mode.run({application, resolved.config, windows});
  const std::string json = line.extra["json"];
  if (json == "-") {
    application.out << result.json;
    return 0;
  }
  application.out << result.text;
  if (!json.empty()) write_file_atomically(json, result.json);
  return 0;
}

}  // namespace welkin::apps
