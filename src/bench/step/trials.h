// SPDX-License-Identifier: Apache-2.0
// One configuration after the other through the same measurement, side by side: the ladder of switches, sweeps over a key, and
// what a switch would gain.
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
  std::optional<config::RunConfig> config;  // absent: not measured, for the reason in `note`
  std::string note{};
  std::optional<c10::Device> device{};  // absent: that of the context
};

struct TrialRow {
  std::string name, note;
  std::optional<Rates> rates;   // of all ranks
  double flops_per_second = 0;  // of the model's matmuls
  int64_t peak_bytes = 0;       // the peak less what was there before the model, resident or on the GPU
};

// In their order; the last trial's settings of torch stay. A configuration that this machine refuses (ConfigError) or, on a rank
// alone, has no memory for is a row with the reason and no figure; so are those after an interruption, which passes through where
// nothing is measured yet. Every rank calls it.
std::vector<TrialRow> run_trials(const std::vector<Trial>& trials, StepMode mode, const StepBenchContext& context);

// Ratios are to the first row that has a figure.
std::string trials_text(const std::string& title, const std::vector<TrialRow>& rows);
nlohmann::ordered_json trials_json(const std::vector<TrialRow>& rows);

// Samples per second, ratio and peak memory below one another: as bars by name, or over a number of each row.
std::string trials_svg(const std::string& title, const std::vector<TrialRow>& rows);
std::string trials_svg(const std::string& title, const std::vector<TrialRow>& rows, const std::string& axis,
                       const std::vector<double>& places);

// The row that is faster than the first beyond doubt, its slowest window than the first's fastest one; of several the fastest,
// else the first that has a figure. Null without figures.
const TrialRow* fastest(const std::vector<TrialRow>& rows);

}  // namespace welkin::bench
