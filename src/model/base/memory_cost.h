// SPDX-License-Identifier: Apache-2.0
// Memory of a model's training step besides weights; torch-free.
#pragma once

#include <array>
#include <cstdint>

#include "config/schema/choices.h"

namespace welkin::model {

// Values, not bytes, that the forward pass of one sample keeps for the backward pass. The batch itself is not counted: it is
// in the loader's buffers.
struct SavedValues {
  double ends = 0;        // before and behind the blocks: every rank of tp and cp holds them whole
  double stream = 0;      // inputs of norms, float32 under mixed precision too; split by cp, and by tp with sequence_parallel
  double shared = 0;      // inputs of matmuls, in their type; split by cp, and by tp with sequence_parallel
  double normed = 0;      // results of norms that enter matmuls, split as `shared`; on a CPU they are recomputed
  double normed_end = 0;  // the same behind the blocks, split as `ends`
  double inner = 0;       // in the type of matmuls, split by tp and by cp
  double joined = 0;      // concatenations of two inputs, on GPUs, whose convolutions take one tensor; in the type of matmuls
  double keys = 0;        // keys and values of attention: as inner, but whole in cp if context_mode is all_gather

  // The sum for one process on a CPU.
  double sum_on_cpu() const { return ends + stream + shared + inner + keys; }
};

inline constexpr std::array kSavedMembers{&SavedValues::ends,   &SavedValues::stream,     &SavedValues::shared,
                                          &SavedValues::normed, &SavedValues::normed_end, &SavedValues::inner,
                                          &SavedValues::joined, &SavedValues::keys};

inline SavedValues operator+(SavedValues a, const SavedValues& b) {
  for (const auto member : kSavedMembers) a.*member += b.*member;
  return a;
}
inline SavedValues operator*(double factor, SavedValues values) {
  for (const auto member : kSavedMembers) values.*member *= factor;
  return values;
}

// Activation checkpointing as in config::LoopConfig. Choices by pattern or budget are not counted: they need the
// model.
struct CheckpointedBlocks {
  config::CheckpointedPart part = config::CheckpointedPart::None;
  int64_t blocks = 0;  // number of checkpointed blocks, from the first; 0: all
};

struct MemoryCost {
  SavedValues kept{};            // per sample
  int64_t split_parameters = 0;  // parameters that tensor parallelism splits
  // Per sample, under activation checkpointing: further values of one part while it is recomputed, and the FLOPs of recomputing
  // all parts.
  SavedValues again{};
  double recompute_flops = 0;
  // Matmul weights of all recomputed parts, and of one of them: each recomputation makes its 16-bit copies. All of them are
  // split_parameters.
  int64_t checkpointed_weights = 0, recomputed_weights = 0;
  // Convolutions take weights as they are; so do, on a CPU, 16-bit matmuls that are made in float32: they round on the way.
  bool has_cast_weights = true;  // 16-bit matmuls copy their weights
  int64_t constants = 0;         // float32 values besides weights on every device: tables of transforms
};

}  // namespace welkin::model
