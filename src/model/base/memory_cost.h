// SPDX-License-Identifier: Apache-2.0
// What a training step of a model holds besides weights; torch-free.
#pragma once

#include <array>
#include <cstdint>

#include "config/schema/choices.h"

namespace welkin::model {

// What the forward pass of one sample keeps for the backward pass, in values and not in bytes. The batch itself is not counted:
// it lies in the loader's buffers.
struct SavedValues {
  double ends = 0;        // before and behind the blocks: every rank of tp and cp holds them whole
  double stream = 0;      // inputs of norms, float32 under mixed precision too; split by cp, and by tp with sequence_parallel
  double shared = 0;      // inputs of matmuls, in their type; split by cp, and by tp with sequence_parallel
  double normed = 0;      // results of norms that enter matmuls, as `shared`; a CPU makes them again
  double normed_end = 0;  // the same behind the blocks, as `ends`
  double inner = 0;       // in the type of matmuls, split by tp and by cp
  double joined = 0;      // copies of two inputs as one, where a device's convolution takes one (GPUs); in the type of matmuls
  double keys = 0;        // keys and values of attention: as inner, but whole in cp where context_mode is all_gather

  // Of one process on a CPU.
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

// Activation checkpointing as config::LoopConfig says it. What a pattern or a budget chooses is known once the model is there: it
// is not counted.
struct CheckpointedBlocks {
  config::CheckpointedPart part = config::CheckpointedPart::None;
  int64_t blocks = 0;  // the first so many; 0: all
};

struct MemoryCost {
  SavedValues kept{};            // per sample
  int64_t split_parameters = 0;  // those that tensor parallelism divides
  // Per sample, under activation checkpointing: what one part keeps besides while it is run again, and the FLOPs of running all
  // of them again.
  SavedValues again{};
  double recompute_flops = 0;
  // Weights of matmuls in all parts that are run again, and in one of them: copies in 16 bits go with each run. All of them are
  // split_parameters.
  int64_t checkpointed_weights = 0, recomputed_weights = 0;
  // On a CPU. Where matmuls of 16 bits are made in float32, weights are rounded on the way, and no copies stay but of those that
  // are joined for one matmul: so many, of parts that run again those of one. Convolutions take weights as they are.
  int64_t joined_weights = 0;
  bool has_cast_weights = true;  // matmuls of 16 bits take copies of their weights
  int64_t constants = 0;         // values that are no weights and belong to every device: tables of transforms, float32
};

}  // namespace welkin::model
