// SPDX-License-Identifier: Apache-2.0
// Adam with states of fewer bits, of one run of float32 weights, as plain pointers; torch-free. The arithmetic between reading
// and writing a state is AdamRule's in float32.
#pragma once

#include <cstdint>

#include "ops/arithmetic/state_codes.h"

namespace welkin::ops {

struct AdamRule;

// Which words of which stream round: bits 0 to 15 of word e mod 4 of philox(stream, counter, e / 4) for the average of element e,
// bits 16 to 31 for the average of squares.
struct RoundingKey {
  uint64_t stream = 0, counter = 0;
};

struct LeanUpdateKernel {
  // States are bfloat16, rounded up with the probability of what rounding down would lose. `first`: the number of the run's first
  // element.
  void (*bf16_adam)(const AdamRule& rule, const RoundingKey& key, int64_t first, int64_t count, float* value,
                    const float* gradient, uint16_t* average, uint16_t* square);
  // A run of whole blocks, of which the last may be shorter; one scale a block.
  void (*coded_adam)(const AdamRule& rule, const CodeTable& average_codes, const CodeTable& square_codes, int64_t count,
                     float* value, const float* gradient, uint8_t* average, float* average_scale, uint8_t* square,
                     float* square_scale);
};

}  // namespace welkin::ops
