// SPDX-License-Identifier: Apache-2.0
// Measures one configuration after the other in the same way, side by side: the ladder of switches, sweeps over a key, and
// the gain of each switch.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/step/step_bench.h"
#include "config/schema/run_config.h"

namespace welkin::bench {

struct Trial {
  std::string name;
  std::optional<config::RunConfig> config;  // absent: not measured; `note` has the reason
  std::string note{};
  std::optional<c10::Device> device{};  // absent: the context's device
};

struct TrialRow {
  std::string name, note;
  std::optional<Rates> rates;   // of all ranks together
  double flops_per_second = 0;  // of the model's matmuls
  int64_t peak_bytes = 0;       // the peak minus memory from before the model, resident or on the GPU
};

// Runs the trials in their order; the last trial's settings of torch stay. A refused configuration (ConfigError), or on a lone
// rank one that lacks memory, becomes a row with the reason and without figures; so do trials after an interruption, which is
// rethrown if nothing is measured yet. Every rank calls it.
std::vector<TrialRow> run_trials(const std::vector<Trial>& trials, StepMode mode, const StepBenchContext& context);

// Ratios are to the first row with a figure.
std::string trials_text(const std::string& title, const std::vector<TrialRow>& rows);
nlohmann::ordered_json trials_json(const std::vector<TrialRow>& rows);

// Panels for samples per second, ratio and peak memory: bars by name, or curves over a number of each row.
std::string trials_svg(const std::string& title, const std::vector<TrialRow>& rows);
std::string trials_svg(const std::string& title, const std::vector<TrialRow>& rows, const std::string& axis,
                       const std::vector<double>& places);

// The fastest of the rows that are certainly faster than the first: their slowest window beats its fastest. Else the
// first row with a figure. Null without figures.
const TrialRow* fastest(const std::vector<TrialRow>& rows);

}  // namespace welkin::bench
