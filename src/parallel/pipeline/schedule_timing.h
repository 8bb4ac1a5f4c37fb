// SPDX-License-Identifier: Apache-2.0
// Times of a schedule from the costs of its passes: begin and end of each pass, idle time, held activations, and whether it
// ends at all. A simulation of the table alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "parallel/pipeline/schedule.h"

namespace welkin::parallel {

// Costs in any unit of time, for a rank's whole share of the model: a pass of one of its chunks takes 1/chunks of it.
struct PassCosts {
  double forward = 1;
  double backward_input = 1;
  double backward_weight = 1;
  double transfer = 0;           // of an activation, or of its gradient, to another rank; ranks can compute meanwhile
  std::vector<double> stages{};  // cost of each stage over the mean of all; empty: equal costs

  double of(PassKind kind) const;
};

struct TimedPass {
  Pass pass;
  double begin = 0, end = 0;
};

struct ScheduleTiming {
  std::vector<std::vector<TimedPass>> rows;  // by rank
  double length = 0;                         // of the step
  // The fraction of the ranks' time without a pass, 0 to 1.
  double bubble = 0;
  // By rank: the most micro-batches, each for one lead, whose activations it holds at once, in units of its whole share of the
  // model. A micro-batch is held from its forward pass to its last backward pass.
  std::vector<double> held;
};

// The same, where halves of backward passes also hold values until the weight gradients are computed. These take `waiting`
// times the memory of activations.
std::vector<double> held_with_waiting(const Schedule& schedule, double waiting);

// InternalError with the passes that wait for each other if the table has a deadlock, or if it lacks a pass, or has one twice
// or on the wrong rank.
ScheduleTiming time_schedule(const Schedule& schedule, const PassCosts& costs = {});

// Describes what is wrong with the table; empty if nothing is.
std::string problem_of(const Schedule& schedule);

// The idle fraction by the kind's publication, for free transfers: (P - 1) / (m + P - 1) for gpipe and 1f1b,
// (P - 1) / (v m + P - 1) for interleaved, and I / (m T + I) for zero_bubble, where T is the sum of all three costs and
// I = (P - 1) (forward + input) - (min(m, P) - 1) weight; the publication has m >= P. Stages have equal costs. For n leads it
// is (P - 1) / (n v m + P - 1); with m < P the n v - 1 turns before the last one take P micro-batches' time each. Nothing for
// zero_bubble with leads and for gradients of the last lead only, for which only the table gives the answer.
std::optional<double> promised_bubble(config::PipelineSchedule kind, const PipelineShape& shape, const PassCosts& costs = {});

}  // namespace welkin::parallel
