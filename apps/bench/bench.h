// SPDX-License-Identifier: Apache-2.0
// What the modes of `welkin bench` are given and give back. A mode is a function in one of apps/bench/*.cpp and a row of the
// table in apps/bench/modes.cpp; what it measures stands in src/bench/.
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

// All of it outlives the mode. Every rank of the world runs the mode; the first one's result is printed.
struct BenchRequest {
  Application& application;
  const config::CommandLine& line;  // line.extra holds the flags of bench itself
  const config::RunConfig& config;  // torch is configured by it
  const parallel::World& world;
  c10::Device device;
  bench::WindowOptions windows;
  std::function<bool()> is_interrupted;  // whether a signal has come: on several ranks, what all of them have agreed on
};

// What a mode says: lines for a reader, keys for a program, and a picture where it has one.
struct BenchResult {
  std::string text;
  nlohmann::ordered_json json{};
  std::string svg{};
  bool has_figures = true;  // false: every row says why it has none
};

// What the machine can do, for as long as a window takes but not too short: without the run's limit of memory, which is the
// model's.
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
// A flag of bench itself; empty where it was not given.
std::string bench_flag(const BenchRequest& request, const std::string& name);

}  // namespace welkin::apps
