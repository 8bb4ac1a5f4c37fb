// SPDX-License-Identifier: Apache-2.0
// Adam with states of fewer bits, for one run of float32 weights, as plain pointers; torch-free. Between reading and writing a
// state the arithmetic is AdamRule's in float32.
#pragma once

#include <cstdint>

#include "ops/arithmetic/state_codes.h"

namespace welkin::ops {

struct AdamRule;

// Selects the random words for rounding: bits 0 to 15 of word e mod 4 of philox(stream, counter, e / 4) for the average of
// element e, bits 16 to 31 for its average of squares.
struct RoundingKey {
  uint64_t stream = 0, counter = 0;
};

struct LeanUpdateKernel {
  // States are bfloat16 with stochastic rounding: rounded up with the probability of the remainder. `first`: index of the run's
  // first element.
  void (*bf16_adam)(const AdamRule& rule, const RoundingKey& key, int64_t first, int64_t count, float* value,
                    const float* gradient, uint16_t* average, uint16_t* square);
  // A run of whole blocks, the last of which may be shorter; one scale per block.
  void (*coded_adam)(const AdamRule& rule, const CodeTable& average_codes, const CodeTable& square_codes, int64_t count,
                     float* value, const float* gradient, uint8_t* average, float* average_scale, uint8_t* square,
                     float* square_scale);
};

}  // namespace welkin::ops
