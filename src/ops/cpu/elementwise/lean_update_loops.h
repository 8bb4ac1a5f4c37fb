// SPDX-License-Identifier: Apache-2.0
// Adam with states of fewer bits (lean_update_kernel.h): a group of numbers is widened into the cache, updated in float32 and
// made short again. Included by one file per instruction set; see ops/cpu/lanes/lanes.h for why all is unnamed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/cpu/elementwise/update_loops.h"
#include "ops/cpu/lanes/philox_lanes.h"

namespace welkin::ops {
namespace {

constexpr int64_t kRoundedGroup = 4 * kPhiloxLanes;  // elements of sixteen blocks of random words

WELKIN_INLINE float widened_bf16(uint16_t bits) {
  const uint32_t word = static_cast<uint32_t>(bits) << 16;
  float value = 0;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

// `dice`: 16 random bits. What is not finite stays so, since a carry would make another number of it.
WELKIN_INLINE uint16_t rounded_bf16(float value, uint32_t dice) {
  uint32_t word = 0;
  std::memcpy(&word, &value, sizeof word);
  const bool finite = (word & 0x7f800000U) != 0x7f800000U;
  return static_cast<uint16_t>((word + (finite ? dice : 0U)) >> 16);
}

inline void rounding_words(const RoundingKey& key, uint64_t first_block, uint32_t (&in_order)[kRoundedGroup]) {
  LaneWords words[4];
  philox_words(key.stream, key.counter, first_block, words);
  for (int lane = 0; lane < kPhiloxLanes; ++lane) {
    for (int w = 0; w < 4; ++w) in_order[4 * lane + w] = words[w][lane];
  }
}

inline void widen_bf16(int64_t count, const uint16_t* __restrict bits, float* __restrict values) {
  for (int64_t i = 0; i < count; ++i) values[i] = widened_bf16(bits[i]);
}

inline void round_bf16(int64_t count, int shift, const uint32_t* __restrict words, const float* __restrict values,
                       uint16_t* __restrict bits) {
  for (int64_t i = 0; i < count; ++i) bits[i] = rounded_bf16(values[i], words[i] >> shift & 0xffffU);
}

inline void bf16_adam_loop(const AdamRule& rule, const RoundingKey& key, int64_t first, int64_t count, float* value,
                           const float* gradient, uint16_t* average, uint16_t* square) {
  alignas(64) float m[kRoundedGroup], v[kRoundedGroup];
  alignas(64) uint32_t words[kRoundedGroup];
  for (int64_t i = 0; i < count;) {
    const int64_t before = (first + i) % 4;  // words of a block that are others'
    const int64_t here = std::min(kRoundedGroup - before, count - i);
    rounding_words(key, static_cast<uint64_t>(first + i) / 4, words);
    widen_bf16(here, average + i, m);
    widen_bf16(here, square + i, v);
    adam_loop(rule, here, value + i, gradient + i, m, v);
    round_bf16(here, 0, words + before, m, average + i);
    round_bf16(here, 16, words + before, v, square + i);
    i += here;
  }
}

inline void widen_codes(const CodeTable& table, float scale, int64_t count, const uint8_t* __restrict codes,
                        float* __restrict values) {
  for (int64_t i = 0; i < count; ++i) values[i] = table.value[codes[i]] * scale;
}

inline float largest_magnitude(int64_t count, const float* values) {
  float largest[8] = {};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (int lane = 0; lane < 8; ++lane) {
      const float size = std::fabs(values[i + lane]);
      largest[lane] = size > largest[lane] ? size : largest[lane];
    }
  }
  for (; i < count; ++i) largest[0] = std::max(largest[0], std::fabs(values[i]));
  return *std::max_element(largest, largest + 8);
}

// The nearest code of value times inverse, whose magnitude is at most one; halfway, the one nearer to zero.
inline void nearest_codes(const CodeTable& table, float inverse, int64_t count, const float* __restrict values,
                          uint8_t* __restrict codes) {
  for (int64_t i = 0; i < count; ++i) {
    const float scaled = values[i] * inverse;
    const float size = std::min(std::fabs(scaled), 1.0F);
    int32_t word = 0;
    std::memcpy(&word, &size, sizeof word);
    const int32_t cell = std::max(word >> 16, kFirstCell) - kFirstCell;
    const int32_t away = table.cell_code[cell] + (size > table.cell_border[cell] ? 1 : 0);
    const int32_t below = std::min(away, table.most_negative);
    codes[i] = static_cast<uint8_t>(table.zero + (scaled < 0 ? -below : away));
  }
}

// Returns the block's scale.
inline float encode_block(const CodeTable& table, int64_t count, const float* values, uint8_t* codes) {
  const float scale = largest_magnitude(count, values);
  nearest_codes(table, scale > 0 ? 1.0F / scale : 0.0F, count, values, codes);
  return scale;
}

inline void coded_adam_loop(const AdamRule& rule, const CodeTable& average_codes, const CodeTable& square_codes, int64_t count,
                            float* value, const float* gradient, uint8_t* average, float* average_scale, uint8_t* square,
                            float* square_scale) {
  alignas(64) float m[kCodedBlock], v[kCodedBlock];
  for (int64_t i = 0; i < count; i += kCodedBlock) {
    const int64_t here = std::min(kCodedBlock, count - i), block = i / kCodedBlock;
    widen_codes(average_codes, average_scale[block], here, average + i, m);
    widen_codes(square_codes, square_scale[block], here, square + i, v);
    adam_loop(rule, here, value + i, gradient + i, m, v);
    average_scale[block] = encode_block(average_codes, here, m, average + i);
    square_scale[block] = encode_block(square_codes, here, v, square + i);
  }
}

}  // namespace
}  // namespace welkin::ops
