// SPDX-License-Identifier: Apache-2.0
// Arguments and results of the modes of `welkin bench`. A mode is a function in one of apps/bench/*.cpp and a row of the
// table in apps/bench/modes.cpp. The measurements are in src/bench/.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/cli/application.h"
#include "bench/step/peaks.h"
#include "bench/step/rates.h"
#include "config/flags/command_line.h"
#include "config/resolve/resolve.h"
#include "parallel/comm/world.h"

namespace welkin::apps {

// Arguments of a mode; they outlive it. Every rank of the world runs the mode; the first one's result is printed.
struct BenchRequest {
  Application& application;
  const config::CommandLine& line;  // line.extra holds the flags of bench itself
  const config::RunConfig& config;  // torch is configured by it
  const parallel::World& world;
  c10::Device device;
  bench::WindowOptions windows;
  std::function<bool()> is_interrupted;  // true once a signal has come: on several ranks, once all of them have agreed on it
};

// Result of a mode: lines for a reader, keys for a program, and a picture where the mode has one.
struct BenchResult {
  std::string text;
  nlohmann::ordered_json json{};
  std::string svg{};
  bool has_figures = true;  // false: every row says why it has none
};

// Measures the machine's peaks for about the length of a window, within limits. The run's memory limit does not apply: it is
// for the model.
bench::Peaks peaks_of_machine(const BenchRequest& request);

// apps/bench/steps.cpp
BenchResult bench_io(const BenchRequest& request);
BenchResult bench_synthetic(const BenchRequest& request);
BenchResult bench_full(const BenchRequest& request);
BenchResult bench_nocomm(const BenchRequest& request);
BenchResult bench_all(const BenchRequest& request);

// apps/bench/layers.cpp
BenchResult bench_layers(const BenchRequest& request);

// apps/bench/memory.cpp
BenchResult bench_memory(const BenchRequest& request);

// apps/bench/trials.cpp
BenchResult bench_ladder(const BenchRequest& request);
BenchResult bench_sweep(const BenchRequest& request);
BenchResult bench_explore(const BenchRequest& request);

// The configuration's flags and those of bench itself.
config::CommandLine parse_bench(int argc, const char* const* argv);
// Value of a flag of bench itself; empty where it was not given.
std::string bench_flag(const BenchRequest& request, const std::string& name);

}  // namespace welkin::apps
