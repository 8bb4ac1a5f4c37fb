// SPDX-License-Identifier: Apache-2.0
// The schedule of a pipeline as data: the passes of every rank in their order. A model is cut into stages, and rank r has the
// stages r, r + ranks, ... (one per chunk). A pass is one stage's forward or backward work for one micro-batch. If a sample
// is trained for several steps of the model (leads), their stages form one chain, and the order of passes treats leads like
// chunks. Pure functions, without model, tensors or clock.
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
  int64_t stage = 0;  // in the chain: the model's stages, first to last, for one lead after the other
  int64_t micro = 0;  // micro-batch of the step

  bool operator==(const Pass&) const = default;
};

struct PipelineShape {
  int64_t ranks = 1;
  int64_t micros = 1;      // micro-batches of a step
  int64_t chunks = 1;      // stages of a rank; more than one only with `interleaved`
  int64_t leads = 1;       // steps of the model that a sample is trained for, each fed with the previous prediction
  bool only_last = false;  // only the last lead has a gradient, and so backward passes

  int64_t stages() const { return ranks * chunks; }  // of the model
  int64_t chain() const { return leads * stages(); }
  int64_t rank_of(int64_t stage) const { return stage % ranks; }
  // For a stage of the chain: the model's stage whose weights it has, its number among the rank's stages, and its lead, from 1.
  int64_t of_model(int64_t stage) const { return stage % stages(); }
  int64_t chunk_of(int64_t stage) const { return of_model(stage) / ranks; }
  int64_t lead_of(int64_t stage) const { return stage / stages() + 1; }
  // The first stage of the chain whose passes have a gradient.
  int64_t first_with_gradient() const { return only_last ? chain() - stages() : 0; }
};

struct Schedule {
  config::PipelineSchedule kind = config::PipelineSchedule::OneForwardOneBackward;
  PipelineShape shape;
  std::vector<std::vector<Pass>> rows;  // by rank
};

// gpipe: all forward passes, then all backward passes (Huang et al. 2019).
// 1f1b: after `ranks` - r forward passes each is followed by a backward pass (PipeDream-Flush, Narayanan et al. 2019 and 2021).
// interleaved: 1f1b of several stages per rank (Narayanan et al. 2021); micro-batches go through in groups of `ranks`.
// zero_bubble: ZB-H1, 1f1b with weight gradients delayed until a rank would idle (Qi et al. 2023).
// With several leads a group passes through one after the other, as through chunks. For 1f1b and zero_bubble, whose
// micro-batches need not be a multiple of the ranks, groups have `ranks` to 2 `ranks` - 1. With `only_last` forward passes of
// earlier leads come first: they hold no activations. ConfigError if the kind cannot take the shape, with one that it can take.
Schedule make_schedule(config::PipelineSchedule kind, const PipelineShape& shape);

// Why the kind cannot take the shape, and what to change; empty texts if it can.
struct ShapeProblem {
  std::string what, remedy;
};
ShapeProblem problem_of(config::PipelineSchedule kind, const PipelineShape& shape);
void check_shape(config::PipelineSchedule kind, const PipelineShape& shape);  // ConfigError where make_schedule() throws one

// For a step with fewer micro-batches than the others (the last of an epoch): the same kind if it takes that number, else all
// forward passes and then all backward passes, which work for any number.
Schedule schedule_of_short_step(config::PipelineSchedule kind, const PipelineShape& shape);

// Only forward passes, in the order of gpipe.
Schedule make_forward_schedule(const PipelineShape& shape);

}  // namespace welkin::parallel
