// SPDX-License-Identifier: Apache-2.0
// `welkin bench --memory`: bytes that a rank holds under the configured layout: parameters, gradients and optimizer state by
// placement (split over one axis, equal along another), and the activations that a forward pass keeps for the backward pass (in
// a pipeline: of all micro-batches in flight). Tensors are counted, not estimated.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/schema/run_config.h"
#include "parallel/comm/world.h"
#include "train/learn/registries.h"

namespace welkin::bench {

// Bytes that one rank holds.
struct HeldBytes {
  int64_t weights = 0;
  int64_t gradients = 0;  // between two passes of a step, or after the last one, whichever are more
  int64_t optimizer = 0;
  int64_t exchange = 0;  // buckets in which gradients are sent, unless gradients are views of them
  // Values kept for the backward pass, with prediction and loss; in a pipeline StepHeld::activations.
  int64_t activations = 0;
  HeldBytes& operator+=(const HeldBytes& other);
};

struct PlacedBytes {
  std::string placement;   // "split over tp, alike on dp cp"
  int64_t parameters = 0;  // elements of the whole model
  HeldBytes held;          // on this rank; no activations
};

struct HeldMemory {
  std::string layout;  // "dp 2, tp 2, cp 1, pp 1"
  std::vector<PlacedBytes> placements;
  std::vector<std::string> places;  // by rank: "dp 0, tp 1"
  std::vector<HeldBytes> ranks;
  int64_t batch_samples = 0;  // of the forward pass, on a rank
  int64_t micro_batches = 0;  // of a step through a pipeline; 0 without one
};

// Every rank of the world calls it. Reports are equal on all ranks, except `placements`. CPU only; it opens no data file.
// `config` is resolved, and torch is configured by it.
HeldMemory run_memory_bench(const config::RunConfig& config, const train::Registries& registries, const parallel::World& world);

std::string held_memory_text(const HeldMemory& report);
void add_held_memory_json(nlohmann::ordered_json& json, const HeldMemory& report);

}  // namespace welkin::bench
