// SPDX-License-Identifier: Apache-2.0
// The schedule of a pipeline as data: for every rank the passes that it makes, in their order. A model is cut into stages, of
// which rank r has r, r + ranks, ... (one per chunk); each pass is one stage's forward or backward work of one micro-batch. Where
// a sample is trained for several steps of the model (leads), their stages are one chain, and leads are to an order of passes
// what chunks are. Pure functions: they know no model, no tensor and no clock.
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
  int64_t stage = 0;  // of the chain: the model's stages, first to last, for one lead after the other
  int64_t micro = 0;  // micro-batch of the step

  bool operator==(const Pass&) const = default;
};

struct PipelineShape {
  int64_t ranks = 1;
  int64_t micros = 1;      // micro-batches of a step
  int64_t chunks = 1;      // stages of a rank; more than one with `interleaved` alone
  int64_t leads = 1;       // steps of the model that a sample is trained for, each fed with the prediction before it
  bool only_last = false;  // the last lead alone has a gradient, and so backward passes

  int64_t stages() const { return ranks * chunks; }  // of the model
  int64_t chain() const { return leads * stages(); }
  int64_t rank_of(int64_t stage) const { return stage % ranks; }
  // Of a stage of the chain: that of the model whose weights it has, its number among those of the rank, and its lead, from 1.
  int64_t of_model(int64_t stage) const { return stage % stages(); }
  int64_t chunk_of(int64_t stage) const { return of_model(stage) / ranks; }
  int64_t lead_of(int64_t stage) const { return stage / stages() + 1; }
  // Of the chain: the first stage whose passes have a gradient.
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
// zero_bubble: ZB-H1, 1f1b whose gradients of weights wait until a rank would idle (Qi et al. 2023).
// Of several leads a group goes through one after the other, as through chunks: of 1f1b and zero_bubble, whose micro-batches need
// not be a multiple of the ranks, groups of `ranks` to 2 `ranks` - 1. With `only_last` all forward passes of the leads before
// come first: they hold no activations. ConfigError where the kind cannot take the shape, with what it would take.
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
