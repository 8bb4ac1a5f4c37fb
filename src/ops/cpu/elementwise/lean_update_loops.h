// SPDX-License-Identifier: Apache-2.0
// Adam with states of fewer bits (lean_update_kernel.h): a group of numbers is widened in the cache, updated in float32 and
// narrowed again. Included by one file per instruction set; see ops/cpu/lanes/lanes.h for the unnamed namespace.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/cpu/elementwise/update_loops.h"
#include "ops/cpu/lanes/philox_lanes.h"

namespace welkin::ops {
namespace {

constexpr int64_t kWordGroup = 4 * kPhiloxLanes;   // elements of sixteen blocks of random words
constexpr int64_t kRoundedGroup = 4 * kWordGroup;  // elements updated at a time

WELKIN_INLINE float widened_bf16(uint16_t bits) {
  const uint32_t word = static_cast<uint32_t>(bits) << 16;
  float value = 0;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

// `dice`: 16 random bits. Infinities and NaN stay, since a carry would change them to other numbers.
WELKIN_INLINE uint16_t rounded_bf16(float value, uint32_t dice) {
  uint32_t word = 0;
  std::memcpy(&word, &value, sizeof word);
  const bool finite = (word & 0x7f800000U) != 0x7f800000U;
  return static_cast<uint16_t>((word + (finite ? dice : 0U)) >> 16);
}

// Random words into `in_order`: kWordGroup words at a time, at least `count`.
inline void rounding_words(const RoundingKey& key, uint64_t first_block, int64_t count, uint32_t* in_order) {
  for (int64_t i = 0; i < count; i += kWordGroup, first_block += kPhiloxLanes) {
    philox_words_in_order(key.stream, key.counter, first_block, *reinterpret_cast<uint32_t(*)[kWordGroup]>(in_order + i));
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
    const int64_t before = (first + i) % 4;  // words of a block that belong to earlier elements
    const int64_t here = std::min(kRoundedGroup - before, count - i);
    rounding_words(key, static_cast<uint64_t>(first + i) / 4, before + here, words);
    widen_bf16(here, average + i, m);
    widen_bf16(here, square + i, v);
    adam_loop(rule, here, value + i, gradient + i, m, v);
    round_bf16(here, 0, words + before, m, average + i);
    round_bf16(here, 16, words + before, v, square + i);
    i += here;
  }
}

template <int W>
struct Codes {
  typedef uint8_t Unaligned __attribute__((vector_size(W), aligned(1)));  // NOLINT(modernize-use-using): see lanes.h
};

// Gathers four bytes at each index.
template <int W>
WELKIN_INLINE typename Lanes<W>::Int gathered(const void* table, typename Lanes<W>::Int index) {
  using Int = typename Lanes<W>::Int;
#if defined(__AVX512F__)
  if constexpr (W == 16) {  // with a mask, as in philox_lanes.h
    return reinterpret_cast<Int>(
        _mm512_mask_i32gather_epi32(__m512i{}, 0xffff, reinterpret_cast<__m512i>(index), static_cast<const int*>(table), 4));
  }
#elif defined(__AVX2__)
  if constexpr (W == 8) {
    return reinterpret_cast<Int>(_mm256_i32gather_epi32(static_cast<const int*>(table), reinterpret_cast<__m256i>(index), 4));
  }
#endif
  Int values;
  for (int lane = 0; lane < W; ++lane) {
    int32_t value = 0;
    std::memcpy(&value, static_cast<const char*>(table) + size_t{4} * static_cast<size_t>(index[lane]), sizeof value);
    values[lane] = value;
  }
  return values;
}

template <int W>
WELKIN_INLINE void widen_some(const CodeTable& table, float scale, const uint8_t* codes, float* values) {
  using Int = typename Lanes<W>::Int;
  const Int index = __builtin_convertvector(*reinterpret_cast<const typename Codes<W>::Unaligned*>(codes), Int);
  store<W>(values, reinterpret_cast<Floats<W>>(gathered<W>(table.value, index)) * scale);
}

template <int W>
void widen_codes(const CodeTable& table, float scale, int64_t count, const uint8_t* codes, float* values) {
  int64_t i = 0;
  for (; i + W <= count; i += W) widen_some<W>(table, scale, codes + i, values + i);
  for (; i < count; ++i) widen_some<1>(table, scale, codes + i, values + i);
}

template <int W>
float largest_magnitude(int64_t count, const float* values) {
  using Int = typename Lanes<W>::Int;
  Floats<W> largest{};
  int64_t i = 0;
  for (; i + W <= count; i += W) {
    const auto size = reinterpret_cast<Floats<W>>(reinterpret_cast<Int>(load<W>(values + i)) & 0x7fffffff);
    largest = size > largest ? size : largest;  // ignores NaN
  }
  float most = largest_of<W>(largest);
  for (; i < count; ++i) most = std::fabs(values[i]) > most ? std::fabs(values[i]) : most;
  return most;
}

// The nearest codes of values times inverse, whose magnitude is at most one (larger ones, and NaN, count as one); ties go to
// codes nearer to zero. The bits of positive floats are in the order of their values.
template <int W>
WELKIN_INLINE void nearest_some(const CodeTable& table, float inverse, const float* values, uint8_t* codes) {
  using Int = typename Lanes<W>::Int;
  const Int bits = reinterpret_cast<Int>(load<W>(values) * inverse);
  const Int least = Int{} + (kFirstCell << 16), most = Int{} + 0x3f800000;
  Int size = bits & 0x7fffffff;
  size = size > least ? size : least;
  size = size < most ? size : most;
  const Int cell = gathered<W>(table.cell, (size >> 16) - kFirstCell);
  const Int away = (cell & 0xff) - ((size & 0xffff) > (cell >> 8));  // a true comparison is -1
  const Int below = away < table.most_negative ? away : Int{} + table.most_negative;
  const Int code = table.zero + (bits < 0 ? -below : away);
  *reinterpret_cast<typename Codes<W>::Unaligned*>(codes) = __builtin_convertvector(code, typename Codes<W>::Unaligned);
}

template <int W>
void nearest_codes(const CodeTable& table, float inverse, int64_t count, const float* values, uint8_t* codes) {
  int64_t i = 0;
  for (; i + W <= count; i += W) nearest_some<W>(table, inverse, values + i, codes + i);
  for (; i < count; ++i) nearest_some<1>(table, inverse, values + i, codes + i);
}

// Encodes a block and returns its scale.
template <int W>
float encode_block(const CodeTable& table, int64_t count, const float* values, uint8_t* codes) {
  const float scale = largest_magnitude<W>(count, values);
  nearest_codes<W>(table, scale > 0 ? 1.0F / scale : 0.0F, count, values, codes);
  return scale;
}

template <int W>
void coded_adam_loop(const AdamRule& rule, const CodeTable& average_codes, const CodeTable& square_codes, int64_t count,
                     float* value, const float* gradient, uint8_t* average, float* average_scale, uint8_t* square,
                     float* square_scale) {
  alignas(64) float m[kCodedBlock], v[kCodedBlock];
  for (int64_t i = 0; i < count; i += kCodedBlock) {
    const int64_t here = std::min(kCodedBlock, count - i), block = i / kCodedBlock;
    widen_codes<W>(average_codes, average_scale[block], here, average + i, m);
    widen_codes<W>(square_codes, square_scale[block], here, square + i, v);
    adam_loop(rule, here, value + i, gradient + i, m, v);
    average_scale[block] = encode_block<W>(average_codes, here, m, average + i);
    square_scale[block] = encode_block<W>(square_codes, here, v, square + i);
  }
}

}  // namespace
}  // namespace welkin::ops
