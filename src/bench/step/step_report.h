// SPDX-License-Identifier: Apache-2.0
// Reports of `welkin bench` about steps: lines for a reader, and keys of a JSON object.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/step/peaks.h"
#include "bench/step/step_bench.h"
#include "config/schema/run_config.h"

namespace welkin::bench {

// Samples per second of the modes that were measured.
struct Figures {
  std::optional<double> io, synthetic, full, nocomm;
};

// The bottleneck of a run and its reason: reading, communication, the longest phase of the step, or reading and computation on
// the same cores.
std::string bottleneck(const Figures& figures, const std::vector<Phase>& phases);

// FLOP/s of the matmuls of the model.
double flops_per_second(const StepReport& report);

std::string step_text(const StepReport& report, const config::RunConfig& config, const Peaks& peaks);
// Adds <mode>_samples_per_s, <mode>_samples_per_s_spread, ... Keys without a mode (phases, memory) are those of the last added
// report.
void add_step_json(nlohmann::ordered_json& json, const StepReport& report, const config::RunConfig& config, const Peaks& peaks);

std::string peaks_text(const Peaks& peaks);
void add_peaks_json(nlohmann::ordered_json& json, const Peaks& peaks);

// "0.478 TFLOP/s", "12.3 GFLOP/s".
std::string format_flops(double flops_per_second);

}  // namespace welkin::bench
