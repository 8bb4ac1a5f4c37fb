// SPDX-License-Identifier: Apache-2.0
// The schedule of a pipeline as data: for every rank the passes that it makes, in their order. A model is cut into stages, of
// which rank r has r, r + ranks, ... (one per chunk); each pass is one stage's forward or backward work of one micro-batch. Pure
// functions: they know no model, no tensor and no clock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/schema/choices.h"

namespace welkin::parallel {

// Backward computes the gradients of input and weights together; BackwardInput and BackwardWeight are its two halves.
enum class PassKind : uint8_t { Forward, Backward, BackwardInput, BackwardWeight };

struct Pass {
  PassKind kind = PassKind::Forward;
  int64_t stage = 0;  // of all stages of the model, first to last
  int64_t micro = 0;  // micro-batch of the step

  bool operator==(const Pass&) const = default;
};

struct PipelineShape {
  int64_t ranks = 1;
  int64_t micros = 1;  // micro-batches of a step
  int64_t chunks = 1;  // stages of a rank; more than one with `interleaved` alone

  int64_t stages() const { return ranks * chunks; }
  int64_t rank_of(int64_t stage) const { return stage % ranks; }
};

struct Schedule {
  config::PipelineSchedule kind = config::PipelineSchedule::OneForwardOneBackward;
  PipelineShape shape;
  std::vector<std::vector<Pass>> rows;  // by rank
};

// gpipe: all forward passes, then all backward passes (Huang et al. 2019).
// 1f1b: after `ranks` - r forward passes each is followed by a backward pass (PipeDream-Flush, Narayanan et al. 2019 and 2021).
// interleaved: 1f1b of several stages per rank (Narayanan et al. 2021); micro-batches go through in groups of `ranks`.
// zero_bubble: ZB-H1, 1f1b whose gradients of weights wait until a rank would idle (Qi et al. 2023).
// ConfigError where the kind cannot take the shape, with what it would take.
Schedule make_schedule(config::PipelineSchedule kind, const PipelineShape& shape);

// Why the kind cannot take the shape, and what would do; empty texts where it can.
struct ShapeProblem {
  std::string what, remedy;
};
ShapeProblem problem_of(config::PipelineSchedule kind, const PipelineShape& shape);

// A step that has fewer micro-batches than the others (the last of an epoch): the same kind where it takes that number, else all
// forward passes and then all backward passes, which any number goes through.
Schedule schedule_of_short_step(config::PipelineSchedule kind, const PipelineShape& shape);

// Forward passes alone, as gpipe makes them.
Schedule make_forward_schedule(const PipelineShape& shape);

}  // namespace welkin::parallel
