// SPDX-License-Identifier: Apache-2.0
// A figure of docs/results/scaling.md: idle time of a pipeline's ranks beside the formula of its schedule. Passes sleep for a
// stated time, so that ranks that share cores are as fast as ranks on their own devices. Schedule, engine and messages are
// those of training.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "config/schema/choices.h"
#include "parallel/comm/world.h"

namespace welkin::bench {

struct PipelineProblem {
  std::vector<int64_t> micros{4, 8, 16};
  double pass_ms = 4;         // forward pass of a rank's whole share; the backward passes for input and for weights are as long
  int64_t values = 64 * 384;  // float32 values that a micro-batch sends over a stage boundary
};

struct PipelineFigure {
  config::PipelineSchedule schedule;
  int64_t micros = 0, chunks = 1;
  double step_s = 0;      // median over repetitions of the slowest rank
  double idle = 0;        // fraction of the ranks' time without a pass
  double promised = 0;    // idle fraction by the formula
  int64_t most_held = 0;  // most micro-batches, over this rank's stages, whose activations were held at once
};

// Measures every schedule with every valid number of micro-batches. All ranks of `world` form one pipeline.
std::vector<PipelineFigure> measure_pipeline(const PipelineProblem& problem, parallel::World& world);

nlohmann::ordered_json pipeline_json(const std::vector<PipelineFigure>& figures);

}  // namespace welkin::bench
