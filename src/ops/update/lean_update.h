// SPDX-License-Identifier: Apache-2.0
// Adam on many float32 tensors on a CPU with averages in fewer bits, in one pass over memory.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/arithmetic/update_kernel.h"
#include "ops/update/part_runs.h"

namespace welkin::ops {

// Averages in bfloat16 with stochastic rounding by the words of `stream` (core/philox.h). An element's words depend on its
// place in the whole.
struct Bf16Span {
  int64_t count = 0;
  float* value = nullptr;
  const float* gradient = nullptr;
  uint16_t* average = nullptr;
  uint16_t* square = nullptr;
  uint64_t stream = 0;
  PartRuns place{};
};
void fused_bf16_adam(const std::vector<Bf16Span>& runs, const AdamRule& rule, uint64_t counter);

// Averages as codes of signed_codes() and unsigned_codes(), with a scale for each block of kCodedBlock.
struct CodedSpan {
  int64_t count = 0;
  float* value = nullptr;
  const float* gradient = nullptr;
  uint8_t* average = nullptr;
  float* average_scale = nullptr;
  uint8_t* square = nullptr;
  float* square_scale = nullptr;
};
void fused_coded_adam(const std::vector<CodedSpan>& runs, const AdamRule& rule);

}  // namespace welkin::ops
