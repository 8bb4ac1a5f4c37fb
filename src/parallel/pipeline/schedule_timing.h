// SPDX-License-Identifier: Apache-2.0
// What a schedule takes when its passes cost so much: when each begins and ends, how long ranks idle, how many activations they
// hold, and whether it ends at all. A simulation on the table alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "parallel/pipeline/schedule.h"

namespace welkin::parallel {

// In any unit of time. Those of a rank's whole share of the model: a pass of one of its chunks takes 1/chunks of it.
struct PassCosts {
  double forward = 1;
  double backward_input = 1;
  double backward_weight = 1;
  double transfer = 0;           // of an activation, or of its gradient, to another rank; it takes none of the ranks' time
  std::vector<double> stages{};  // what each costs over the mean of all; empty: all cost alike

  double of(PassKind kind) const;
};

struct TimedPass {
  Pass pass;
  double begin = 0, end = 0;
};

struct ScheduleTiming {
  std::vector<std::vector<TimedPass>> rows;  // by rank
  double length = 0;                         // of the step
  // The share of the ranks' time in which they idle, 0 to 1.
  double bubble = 0;
  // By rank: the most micro-batches, each of one lead, whose activations it holds at once, in the size of its whole share of the
  // model. One is held from its forward pass to its last backward pass.
  std::vector<double> held;
};

// The same of the table alone where halves of backward passes leave something behind until the gradients of weights are made,
// which takes `waiting` times what activations do.
std::vector<double> held_with_waiting(const Schedule& schedule, double waiting);

// InternalError with the passes that wait for each other where the table has no end, or lacks a pass, or has one twice or on
// another rank.
ScheduleTiming time_schedule(const Schedule& schedule, const PassCosts& costs = {});

// What is wrong with the table, in words; empty where nothing is.
std::string problem_of(const Schedule& schedule);

// The share of idle time after the kind's publication, for free transfers: (P - 1) / (m + P - 1) of gpipe and 1f1b,
// (P - 1) / (v m + P - 1) of interleaved, and I / (m T + I) of zero_bubble, where T is all three costs and
// I = (P - 1) (forward + input) - (min(m, P) - 1) weight: the publication has m >= P. Stages cost alike. Of n leads it is
// (P - 1) / (n v m + P - 1), and with m < P the n v - 1 turns before the last one take P micro-batches' time each; nothing for
// zero_bubble and for gradients of the last lead alone, of which only the table knows.
std::optional<double> promised_bubble(config::PipelineSchedule kind, const PipelineShape& shape, const PassCosts& costs = {});

}  // namespace welkin::parallel
