// SPDX-License-Identifier: Apache-2.0
// `welkin bench --memory`: what a rank holds under the configured layout: parameters, gradients and optimizer state by placement
// (split over which axis, alike on the ranks of which), and the activations that a forward pass leaves for the backward pass, of
// a pipeline those of all micro-batches under way, counted as tensors' bytes, not estimated.
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
  int64_t exchange = 0;  // the buckets in which gradients are sent, where these are no views of them
  // What a forward pass leaves for the backward pass, with prediction and loss; of a pipeline StepHeld::activations.
  int64_t activations = 0;
  HeldBytes& operator+=(const HeldBytes& other);
};

struct PlacedBytes {
  std::string placement;   // "split over tp, alike on dp cp"
  int64_t parameters = 0;  // elements of the whole model
  HeldBytes held;          // by this rank; no activations
};

struct HeldMemory {
  std::string layout;  // "dp 2, tp 2, cp 1, pp 1"
  std::vector<PlacedBytes> placements;
  std::vector<std::string> places;  // by rank: "dp 0, tp 1"
  std::vector<HeldBytes> ranks;
  int64_t batch_samples = 0;  // of the forward pass, on a rank
  int64_t micro_batches = 0;  // of a step through a pipeline; 0 without one
};

// Every rank of the world calls it and has the same report, but for `placements`. On a CPU; no data file is opened. `config` is
// resolved and torch is configured by it.
HeldMemory run_memory_bench(const config::RunConfig& config, const train::Registries& registries, const parallel::World& world);

std::string held_memory_text(const HeldMemory& report);
void add_held_memory_json(nlohmann::ordered_json& json, const HeldMemory& report);

}  // namespace welkin::bench
