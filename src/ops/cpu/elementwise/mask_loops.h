// SPDX-License-Identifier: Apache-2.0
// Factors of a dropout mask from sixteen blocks at a time. Included by one file per instruction set; see ops/cpu/lanes/lanes.h
// for the unnamed namespace.
#pragma once

#include <cstring>

#include "ops/arithmetic/philox_mask.h"
#include "ops/cpu/lanes/philox_lanes.h"

namespace welkin::ops {
namespace {

constexpr int64_t kMaskGroup = 4 * kPhiloxLanes;  // elements of sixteen blocks

inline void group_factors(const MaskRule& rule, uint64_t counter, uint64_t first_block, float (&factors)[kMaskGroup]) {
  alignas(64) uint32_t words[kMaskGroup];
  philox_words_in_order(rule.stream, counter, first_block, words);
  for (int64_t i = 0; i < kMaskGroup; ++i) factors[i] = words[i] >= rule.threshold ? rule.scale : 0.0F;
}

// Implements MaskKernel::factors. Elements before the first and behind the last in a block are computed and discarded.
inline void mask_factors(const MaskRule& rule, uint64_t counter, uint64_t start, int64_t count, float* to) {
  auto skip = static_cast<int64_t>(start % 4);
  uint64_t block = start / 4;
  for (int64_t done = 0; done < count; block += kPhiloxLanes) {
    alignas(64) float group[kMaskGroup];
    group_factors(rule, counter, block, group);
    const int64_t here = kMaskGroup - skip < count - done ? kMaskGroup - skip : count - done;
    std::memcpy(to + done, group + skip, static_cast<size_t>(here) * sizeof(float));
    done += here;
    skip = 0;
  }
}

}  // namespace
}  // namespace welkin::ops
