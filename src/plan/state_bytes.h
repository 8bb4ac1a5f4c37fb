// SPDX-License-Identifier: Apache-2.0
// Bytes per parameter of a training step's state, without activations. The lecture uses two conventions side by side (gradients
// of 2 or 4 bytes, Adam of 12 or 8); each has a named row here.
#pragma once

#include <array>
#include <cstdint>

namespace welkin::plan {

inline constexpr double kBytesPerGib = 1024.0 * 1024.0 * 1024.0;

struct StateRule {
  const char* name;
  double weights, gradients, optimizer;  // bytes per parameter

  double total() const { return weights + gradients + optimizer; }
};

// Float32 master weights count among Adam's 12 bytes in the second row, among the weights in the third.
inline constexpr std::array<StateRule, 8> kStateRules{{
    {"fp32 weights alone", 4, 0, 0},
    {"fp16 with Adam (2 + 2 + 12)", 2, 2, 12},
    {"mixed, AdamW (6 + 4 + 8)", 6, 4, 8},
    {"fp32, AdamW (4 + 4 + 8)", 4, 4, 8},
    {"fp32, SGD with momentum (4 + 4 + 4)", 4, 4, 4},
    {"fp32, SGD (4 + 4)", 4, 4, 0},
    {"mixed, 8-bit AdamW (6 + 4 + 2)", 6, 4, 2},
    {"mixed, Adafactor (6 + 4 + 4)", 6, 4, 4},
}};

// Bytes per parameter on each of `ranks` under ZeRO's stages, from the second row. 0: everything; 1 shards the optimizer's
// states, 2 also the gradients, 3 also the weights.
double zero_bytes_per_parameter(int64_t stage, int64_t ranks);

// Elements that a rank sends per step and parameter in the limit of many ranks.
double zero_traffic_per_parameter(int64_t stage);

}  // namespace welkin::plan
