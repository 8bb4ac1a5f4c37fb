// SPDX-License-Identifier: Apache-2.0
// A figure of docs/results/scaling.md: the idle time of a pipeline's ranks beside the formula of its schedule. Passes sleep for a
// stated time, so that ranks which share cores are as fast as ranks on devices of their own; schedule, engine and messages are
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
  double pass_ms = 4;         // of a forward pass of a rank's whole share; backward by the input and by the weights take as long
  int64_t values = 64 * 384;  // float32 values that a micro-batch sends over a boundary
};

struct PipelineFigure {
  config::PipelineSchedule schedule;
  int64_t micros = 0, chunks = 1;
  double step_s = 0;      // the median of some repetitions, of the slowest rank
  double idle = 0;        // share of the ranks' time in which no pass is made
  double promised = 0;    // the formula
  int64_t most_held = 0;  // micro-batches, in stages of this rank, whose activations were held at once
};

// Every schedule with every number of micro-batches that it takes. All ranks of `world` are one pipeline.
std::vector<PipelineFigure> measure_pipeline(const PipelineProblem& problem, parallel::World& world);

nlohmann::ordered_json pipeline_json(const std::vector<PipelineFigure>& figures);

}  // namespace welkin::bench
